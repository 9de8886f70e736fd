"""Handlers: typed objects in, an exact patch or a reasoned refusal out, and always in time."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from samples.shops import GROUP, Item, Shop, ShopSpec, admission, operations, reviewed, shop
from steersman.errors import BadRequest, NotFound
from steersman.kinds.core_v1 import Secret
from steersman.objects import ObjectMeta, UserInfo, replace
from steersman.patches import JsonPatch
from steersman.webhooks import (
    Admitted,
    Denied,
    Review,
    WebhookServer,
    admission_path,
    forbidden,
    invalid,
    mutates,
    validates,
)
from steersman.webhooks.handler_threads import IGNORING_MAX


@mutates(Shop)
def shop_defaults(given: Shop) -> Shop:
    given.spec.image = given.spec.image or "nginx"
    return given


@validates(Shop, operations=("CREATE", "UPDATE", "DELETE"))
def shop_checks(given: Shop, review: Review[Shop]) -> Admitted[Shop] | None:
    if review.operation == "DELETE":
        if given.spec.protected:
            raise Denied("the shop is protected")
        return None
    problems = []
    if given.spec.replicas > 50:
        problems.append(invalid("spec.replicas", given.spec.replicas, "must be at most 50"))
    if review.old is not None and review.old.spec.host != given.spec.host:
        problems.append(forbidden("spec.host", "may not change"))
    if problems:
        raise Denied(*problems, warnings=["see the manual"], audit_annotations={"rule": "shop"})
    return Admitted(warnings=["be careful"], audit_annotations={"user": review.user.username})


async def test_a_mutation_is_the_exact_difference():
    """Fields that the types do not declare stay, at every level; a filled-in default is not sent."""
    given = shop(items=[{"name": "tea", "price": 1, "unknown": [1.50]}], extra={"a": None}) | {"more": 1}
    response = await reviewed(WebhookServer([shop_defaults]), admission(given), mutates=True)
    assert response.allowed
    assert operations(response) == [{"op": "add", "path": "/spec/image", "value": "nginx"}]


async def test_a_mutation_inside_of_a_list_keeps_unknown_fields():
    @mutates(Shop)
    def first(given: Shop) -> Shop:
        items = [Item(name="bag", price=0), *(given.spec.items or [])]
        items[1].price += 1
        return replace(given, spec=replace(given.spec, items=items))

    @mutates(Shop)
    async def second(given: Shop, review: Review[Shop]) -> Admitted[Shop]:
        given.metadata.labels = {"by": review.user.username}
        return Admitted(given, warnings=["labeled"])

    body = admission(shop(items=[{"name": "tea", "price": 1, "unknown": 5}]))
    response = await reviewed(WebhookServer([first, second]), body, mutates=True)
    patched = msgspec.json.decode(body)["request"]["object"]
    patched = JsonPatch.parse(response.patch or b"[]").apply(patched)
    assert patched["spec"]["items"] == [{"name": "bag", "price": 0}, {"name": "tea", "price": 2, "unknown": 5}]
    assert patched["metadata"]["labels"] == {"by": "ada"}
    assert response.warnings == ("labeled",)


async def test_nothing_to_change_sends_no_patch():
    response = await reviewed(WebhookServer([shop_defaults]), admission(shop(image="mine")), mutates=True)
    assert response.allowed
    assert response.patch is None
    assert response.patch_type is None


async def test_warnings_and_annotations_are_values():
    response = await reviewed(WebhookServer([shop_checks]), admission(shop()))
    assert response.allowed
    assert response.warnings == ("be careful",)
    assert response.audit_annotations == {"user": "ada"}


async def test_a_refusal_names_the_fields():
    """The client's error has one cause for each field, as for the server's own rules."""
    body = admission(shop(host="b", replicas=99), shop(), operation="UPDATE")
    response = await reviewed(WebhookServer([shop_checks]), body)
    assert not response.allowed
    assert response.status is not None
    assert (response.status.code, response.status.reason) == (422, "Invalid")
    assert [(cause.field, cause.reason) for cause in response.status.causes] == [
        ("spec.replicas", "FieldValueInvalid"),
        ("spec.host", "FieldValueForbidden"),
    ]
    assert response.status.message == (
        f'Shop.{GROUP} "corner" is invalid: [spec.replicas: Invalid value: 99: must be at most 50,'
        " spec.host: Forbidden: may not change]"
    )
    assert response.warnings == ("see the manual",)
    assert response.audit_annotations == {"rule": "shop"}


async def test_a_deletion_gets_the_old_object():
    server = WebhookServer([shop_checks])
    refused = await reviewed(server, admission(None, shop(protected=True), operation="DELETE"))
    assert refused.status is not None
    assert (refused.status.code, refused.status.message) == (403, "the shop is protected")
    assert (await reviewed(server, admission(None, shop(), operation="DELETE"))).allowed


async def test_a_handler_runs_only_for_its_operations():
    @validates(Shop, operations=("UPDATE",))
    def never(_: Shop) -> None:
        raise Denied("not for creations")

    assert (await reviewed(WebhookServer([never]), admission(shop()))).allowed


async def test_user_dry_run_and_key_are_given():
    seen: list[Review[Shop]] = []

    @validates(Shop)
    async def look(_: Shop, review: Review[Shop]) -> None:
        seen.append(review)

    await reviewed(WebhookServer([look]), admission(shop(), dryRun=True))
    assert seen == [
        Review(
            operation="CREATE",
            user=UserInfo(username="ada", groups=("keepers",)),
            dry_run=True,
            key=("town", "corner"),  # type: ignore[arg-type]
            uid="7",
        )
    ]


def test_a_handler_is_a_function():
    """A test of a handler needs neither a server nor a review."""
    given = Shop(metadata=ObjectMeta(name="a"), spec=ShopSpec(host="a"))
    assert shop_defaults(given).spec.image == "nginx"
    given.spec.protected = True
    with pytest.raises(Denied, match="protected"):
        shop_checks(given, Review(operation="DELETE"))


@pytest.mark.parametrize("form", ["def", "async def"])
async def test_a_handler_that_raises_denies_with_its_line(form: str, caplog: pytest.LogCaptureFixture):
    def breaks(given: Shop) -> None:
        raise KeyError("tier")

    async def breaks_later(given: Shop) -> None:
        raise KeyError("tier")

    handler = validates(Shop)(breaks_later if form == "async def" else breaks)
    response = await reviewed(WebhookServer([handler]), admission(shop()))
    assert not response.allowed
    assert response.status is not None
    assert response.status.code == 500
    assert response.status.message.startswith(f"{handler.name} failed: KeyError: 'tier' (test_admission.py:")
    assert "KeyError" in caplog.text


async def test_a_secret_is_not_in_an_error(caplog: pytest.LogCaptureFixture):
    """The text of an error may quote the object: for a Secret it is neither logged nor returned."""

    @validates(Secret)
    def breaks(given: Secret) -> None:
        raise ValueError(f"bad {given.data}")

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}
    response = await reviewed(WebhookServer([breaks]), admission(secret), kind=Secret)
    assert response.status is not None
    assert response.status.message.startswith("breaks failed: ValueError (")
    assert "hunter2" not in caplog.text + response.status.message
    assert "aHVudGVyMg" not in caplog.text + response.status.message


async def test_a_handler_that_blocks_denies_in_time_and_blocks_no_other():
    """`time.sleep` in a handler neither stops the loop nor the end of the program."""
    release = threading.Event()

    @validates(Shop)
    def blocks(_: Shop) -> None:
        release.wait()

    server = WebhookServer([blocks, shop_defaults])
    try:
        blocked = await reviewed(server, admission(shop()), within=0.2)
        assert blocked.status is not None
        assert (blocked.status.code, blocked.status.message) == (504, "blocks did not answer within 0.18 s")
        # more than there are threads: the last ones never start
        body = admission(shop())
        answers = await asyncio.gather(*(reviewed(server, body, within=0.2) for _ in range(20)))
        assert not any(each.allowed for each in answers)
        assert any("handler threads are busy" in each.status.message for each in answers if each.status)
        assert server.busy()
    finally:
        release.set()
        server.close()


async def test_an_async_handler_that_waits_too_long_denies():
    @validates(Shop)
    async def waits(_: Shop) -> None:
        await asyncio.Event().wait()

    response = await reviewed(WebhookServer([waits]), admission(shop()), within=0.1)
    assert response.status is not None
    assert response.status.reason == "Timeout"


async def test_an_async_handler_that_ignores_its_cancellation_denies_in_time():
    """The API server has its answer; the handler runs on, but not without a bound."""
    release = asyncio.Event()

    @validates(Shop)
    async def ignores(_: Shop) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    server = WebhookServer([ignores])
    body = admission(shop())
    responses = await asyncio.gather(*(reviewed(server, body, within=0.1) for _ in range(IGNORING_MAX)))
    assert {each.status.reason for each in responses if each.status} == {"Timeout"}
    refused = await reviewed(server, body, within=30)
    assert refused.status is not None
    assert f"{IGNORING_MAX} earlier calls ignore their cancellation" in refused.status.message
    release.set()
    async with asyncio.timeout(30):
        while not (await reviewed(server, body, within=30)).allowed:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_wrong_return_values_deny_and_say_what_to_return():
    @mutates(Shop)
    def forgets(given: Shop) -> None:
        given.spec.image = "lost"

    @mutates(Shop)
    def rebuilds(given: Shop) -> Shop:
        return Shop(metadata=given.metadata, spec=given.spec)

    @validates(Shop)
    def answers(_: Shop) -> bool:
        return True

    def message(response: Any) -> str:
        assert not response.allowed
        return response.status.message

    body = admission(shop())
    assert message(await reviewed(WebhookServer([forgets]), body, mutates=True)) == (
        "forgets returned None; it must return the Shop"
    )
    assert "would lose fields" in message(await reviewed(WebhookServer([rebuilds]), body, mutates=True))
    assert "must return None or an Admitted" in message(await reviewed(WebhookServer([answers]), body))


async def test_a_check_that_changes_the_object_changes_nothing():
    """The API server rejects a patch of a validating webhook."""

    @validates(Shop)
    def check(given: Shop) -> None:
        given.spec.host = given.spec.host.upper()

    response = await reviewed(WebhookServer([check]), admission(shop()))
    assert (response.allowed, response.patch, response.patch_type) == (True, None, None)


@pytest.mark.parametrize("values", [{"warnings": None}, {"warnings": 1}, {"audit_annotations": None}])
async def test_wrong_warnings_deny(values: dict[str, Any]):
    @validates(Shop)
    def check(given: Shop) -> Admitted[Shop]:
        return Admitted(**values)

    response = await reviewed(WebhookServer([check]), admission(shop()))
    assert response.status is not None
    assert response.status.message.startswith("check failed: ")


async def test_a_single_warning_is_one_warning():
    @validates(Shop)
    def check(given: Shop) -> Admitted[Shop]:
        return Admitted(warnings="be careful")

    assert (await reviewed(WebhookServer([check]), admission(shop()))).warnings == ("be careful",)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Panic(BaseException):
    """What extensions written in Rust raise."""


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        Panic("out of memory"),
        Unprintable(),
        Denied("\ud800"),
        Denied(invalid("spec", "\ud800", "\ud800")),
    ],
)
async def test_whatever_a_handler_raises_is_a_denial(error: BaseException):
    @validates(Shop)
    async def check(given: Shop) -> None:
        raise error

    response = await reviewed(WebhookServer([check]), admission(shop()))
    assert not response.allowed
    assert response.status is not None
    assert response.status.message


async def test_an_unreadable_object_is_denied():
    response = await reviewed(WebhookServer([shop_checks]), admission(shop(replicas="many")))
    assert response.status is not None
    assert response.status.code == 400


async def test_a_review_of_another_kind_is_denied():
    wrong = shop() | {"apiVersion": f"{GROUP}/v2"}
    response = await reviewed(WebhookServer([shop_checks]), admission(wrong))
    assert response.status is not None
    assert "not" in response.status.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{}}',
        b"[" * 100_000,
        b'{"kind":"\xff"}',
    ],
)
async def test_a_body_that_is_no_review_is_rejected(body: bytes):
    with pytest.raises(BadRequest):
        await WebhookServer([shop_checks]).answer(admission_path(Shop, mutates=False), body)


async def test_hostile_objects_are_denied():
    """A wrong shape ends in a refusal, not in an exception; deep nesting in a field that no type declares is harmless."""
    server = WebhookServer([shop_defaults, shop_checks])
    deep = b'{"spec":' * 900 + b"1" + b"}" * 900
    body = admission(shop()).replace(b'"protected"', b'"x"')
    for hostile in (deep, b"[]", b"1", b'{"metadata":[]}'):
        text = body.replace(msgspec.json.encode(shop()), hostile, 1)
        response = await reviewed(server, text, mutates=True)
        assert response.allowed == (hostile is deep), hostile[:20]


async def test_an_unknown_path_is_not_found():
    with pytest.raises(NotFound):
        await WebhookServer([shop_checks]).answer("/convert", b"{}")


def test_wrong_declarations_say_what_to_write():
    with pytest.raises(TypeError, match="pass the class of a kind"):
        validates("Shop")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"operations=\('CREATE',\)"):
        validates(Shop, operations="CREATE")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown operation 'create'"):
        validates(Shop, operations=("create",))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no object to change"):
        mutates(Shop, operations=("DELETE",))
    with pytest.raises(TypeError, match="optionally the Review"):
        validates(Shop)(lambda: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a reason"):
        Denied()
    with pytest.raises(ValueError, match="already added"):
        WebhookServer([shop_checks, shop_checks])
    with pytest.raises(TypeError, match="decorate a function"):
        WebhookServer([test_wrong_declarations_say_what_to_write])  # type: ignore[list-item]
