"""What the server quotes of a Secret, or of a field named as secret, reaches no error and no warning."""

from __future__ import annotations

import base64
import logging
import traceback
from typing import Annotated

import pytest

from steersman import Client, JsonPatch, MergePatch, ObjectMeta, Resource, Spec
from steersman.client.redaction import hide_values
from steersman.errors import ApiError, ApiStatus, Forbidden, Invalid, StatusCause, StatusDetails
from steersman.kinds.core_v1 import Secret
from steersman.markers import MaxLength
from steersman.objects import Unstructured
from steersman.objects.secret_values import Redaction

VALUE = "hunter2-OPENSESAME"
ENCODED = base64.b64encode(VALUE.encode()).decode()


def shown(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    return "".join(traceback.format_exception(error)) + caplog.text + repr(error)


async def test_errors_about_a_secret(client: Client, namespace: str, caplog: pytest.LogCaptureFixture):
    """The server quotes a value of another type than it expects; the message still says which field is wrong."""
    caplog.set_level(logging.DEBUG)
    metadata = ObjectMeta(name="pw", namespace=namespace)
    wrong = Secret(metadata=metadata, string_data={"pin": 9021047})  # type: ignore[dict-item]
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw", "namespace": namespace}}
    for written, kind in ((wrong, TypeError), (Unstructured(tree | {"stringData": {"pin": 9021047}}), ApiError)):
        for write in (client.apply, client.create):
            with pytest.raises(kind) as caught:
                await write(written)
            assert "9021047" not in shown(caught.value, caplog)
            assert "stringData" in str(caught.value)
    for field, value in (("data", VALUE), ("data", [VALUE]), ("stringData", {"a": [VALUE]})):
        with pytest.raises(ApiError) as caught:
            await client.create(Unstructured(tree | {field: value if isinstance(value, dict) else {"a": value}}))
        assert "OPENSESAME" not in shown(caught.value, caplog)
    await client.create(Secret(metadata=metadata, string_data={"a": VALUE}))
    for patch in (
        MergePatch({"data": {"a": [ENCODED]}}),
        JsonPatch.parse([{"op": "add", "path": "/data/a", "value": [ENCODED]}]),
    ):
        with pytest.raises(ApiError) as caught:
            await client.patch(Secret, f"{namespace}/pw", patch)
        assert ENCODED not in shown(caught.value, caplog)
        assert "OPENSESAME" not in shown(caught.value, caplog)


def test_causes_that_quote_no_value_stay():
    """Callers decide by them: a namespace may have the name of a value."""
    cause = StatusCause(reason="NamespaceTerminating", message="namespace prod is being terminated")
    status = ApiStatus(code=403, reason="Forbidden", message="no prod", details=StatusDetails(causes=(cause,)))
    error = Forbidden(status)
    hide_values(error, Redaction({"kind": "Secret", "stringData": {"where": "prod"}}, secret=True), secret=True)
    assert error.status.message == "no (hidden)"
    assert error.causes == (cause,)


class LoginSpec(Spec):
    """A spec."""

    password: Annotated[str, MaxLength(8)]
    host: Annotated[str, MaxLength(8)] = ""


async def test_errors_about_fields_named_as_secret(
    api_server, crd_group: str, namespace: str, caplog: pytest.LogCaptureFixture
):
    """Checked before sending, and by the server; values of other fields are shown."""

    class Login(Resource[LoginSpec, None], group=crd_group, version="v1"):
        """A login."""

    login = Login(metadata=ObjectMeta(name="a"), spec=LoginSpec(password=VALUE, host="example.com"))
    for validate in (True, False):
        async with api_server.client(field_manager="tests", namespace=namespace, validate=validate) as client:
            await client.install(Login)
            with pytest.raises(Invalid, match=r"spec\.password") as caught:
                await client.create(login)
            assert "OPENSESAME" not in shown(caught.value, caplog)
            assert "OPENSESAME" not in str(caught.value.status)
