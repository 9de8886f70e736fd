"""A token is believed for as long as its service account, and what it is bound to, are the ones that it was made for."""

import asyncio
import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from samples.embedded import Answer, Raw
from samples.virtual_time import run_virtual
from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest

CORE = "/api/v1/namespaces/default"
ACCOUNTS = f"{CORE}/serviceaccounts"
AUTHENTICATION = "authentication.k8s.io/v1"
KINDS = ["v1", AUTHENTICATION, "rbac.authorization.k8s.io/v1"]


@pytest.fixture
async def server():
    async with ApiServer(kinds=KINDS) as server:
        await Raw(server.handler).post(ACCOUNTS, {"metadata": {"name": "robot"}})
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


async def asked(raw, name="robot", **spec):
    """A new token."""
    made = await raw.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    assert made.code == 201, made.body
    return made.body["status"]["token"]


async def bound(raw, kind, name):
    return await asked(raw, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name})


async def sent_with(server, token, method="GET", path=f"{CORE}/configmaps", body=None):
    """The answer to a request that carries a token."""
    headers = (("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"))
    text = None if body is None else json.dumps(body).encode()
    return Answer(await server.handle(HttpRequest(method, path, headers=headers, body=text)))


async def identity(server, token):
    """Who a server says that it is; the code if it does not."""
    review = {"apiVersion": AUTHENTICATION, "kind": "SelfSubjectReview"}
    answer = await sent_with(server, token, "POST", f"/apis/{AUTHENTICATION}/selfsubjectreviews", review)
    return answer.body["status"]["userInfo"] if answer.code == 201 else answer.code


async def reviewed(raw, token):
    review = {"apiVersion": AUTHENTICATION, "kind": "TokenReview", "spec": {"token": token}}
    return (await raw.post(f"/apis/{AUTHENTICATION}/tokenreviews", review)).body["status"]


def part(tree):
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


def claims_of(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def signed(claims, key):
    text = f"{part({'alg': 'HS256'})}.{part(claims)}"
    signature = base64.urlsafe_b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).rstrip(b"=").decode()
    return f"{text}.{signature}"


async def test_who_has_the_token_is_the_service_account(server, raw):
    token = await asked(raw)
    account = (await raw.get(f"{ACCOUNTS}/robot")).body
    user = await identity(server, token)
    assert user == {
        "username": "system:serviceaccount:default:robot",
        "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]},
    }
    home = "https://kubernetes.default.svc"
    assert await reviewed(raw, token) == {"authenticated": True, "user": user, "audiences": [home]}


async def test_a_token_may_do_what_its_account_may():
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    async with ApiServer(kinds=KINDS, authorizer="rbac") as server:
        raw = Raw(server.handler)
        await raw.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        token = await asked(raw)
        assert (await sent_with(server, token)).code == 403
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
        await raw.post(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
        subjects = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
        await raw.post(f"{rbac}/rolebindings", {"metadata": {"name": "r"}, "subjects": subjects, "roleRef": ref})
        assert (await sent_with(server, token)).code == 200
        assert (await sent_with(server, token, path=f"{CORE}/secrets")).code == 403
        # only who may make tokens makes them
        assert (await sent_with(server, token, "POST", f"{ACCOUNTS}/robot/token", {"spec": {}})).code == 403


@pytest.mark.parametrize("seconds", [600, 3600])
def test_a_token_expires(seconds):
    async def use():
        async with ApiServer(kinds=KINDS) as server:
            raw = Raw(server.handler)
            await raw.post(ACCOUNTS, {"metadata": {"name": "robot"}})
            token = await asked(raw, expirationSeconds=seconds)
            # clocks may differ by a minute
            await asyncio.sleep(seconds + 59)
            before = await identity(server, token)
            await asyncio.sleep(2)
            return before, await identity(server, token), await reviewed(raw, token)

    (before, after, review), _ = run_virtual(use())
    assert before["username"] == "system:serviceaccount:default:robot"
    assert after == 401
    assert review == {"user": {}, "error": "[invalid bearer token, service account token has expired]"}


def test_an_account_that_waits_for_its_finalizers_is_believed_for_a_minute():
    async def use():
        async with ApiServer(kinds=KINDS) as server:
            raw = Raw(server.handler)
            await raw.post(ACCOUNTS, {"metadata": {"name": "robot", "finalizers": ["example.com/a"]}})
            token = await asked(raw)
            await raw.delete(f"{ACCOUNTS}/robot")
            before = await identity(server, token)
            await asyncio.sleep(62)
            return before, await identity(server, token), await reviewed(raw, token)

    (before, after, review), _ = run_virtual(use())
    assert before["username"] == "system:serviceaccount:default:robot"
    assert after == 401
    assert review["error"] == "[invalid bearer token, service account default/robot has been deleted]"


async def test_an_account_that_is_gone_or_another_one_has_no_token(server, raw):
    token = await asked(raw)
    await raw.delete(f"{ACCOUNTS}/robot")
    assert await identity(server, token) == 401
    await raw.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert await identity(server, token) == 401
    assert (await identity(server, await asked(raw)))["username"] == "system:serviceaccount:default:robot"


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("Pod", f"{CORE}/pods", {"spec": {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "a"}]}}),
        ("Secret", f"{CORE}/secrets", {}),
        ("Node", "/api/v1/nodes", {}),
    ],
)
async def test_a_bound_token_ends_with_what_it_is_bound_to(server, raw, kind, path, body):
    body = body | {"metadata": {"name": "a"}}
    assert (await raw.post(path, body)).code == 201
    token, free = await bound(raw, kind, "a"), await asked(raw)
    assert isinstance(await identity(server, token), dict)
    await raw.delete(f"{path}/a")
    assert await identity(server, token) == 401
    await raw.post(path, body)
    assert await identity(server, token) == 401
    assert isinstance(await identity(server, free), dict)


async def test_a_token_for_others_is_none_here(server, raw):
    assert await identity(server, await asked(raw, audiences=["elsewhere"])) == 401
    assert isinstance(
        await identity(server, await asked(raw, audiences=["elsewhere", claims_of(await asked(raw))["iss"]])), dict
    )


async def test_other_users_cannot_create_tokens(server, raw):
    token = await asked(raw)
    header, said, signature = token.split(".")
    claims = claims_of(token)
    more = part(claims | {"exp": claims["exp"] + 3600})
    forged = [
        f"{header}.{more}.{signature}",
        f"{part({'alg': 'none'})}.{said}.",
        f"{part({'alg': 'none'})}.{said}.{signature}",
        f"{part({'alg': 'ES256'})}.{said}.{signature}",
        f"{header}.{said}.",
        f"{header}.{said}.{signature[:-1]}{'A' if signature[-1] != 'A' else 'B'}",
        f"{header}.{said}.{signature}=",
        f"{header}.{said}.{signature}.",
        f"{header}.{said}",
        f"{said}.{signature}",
        signed(claims, b""),
        signed(claims, b"steersman"),
        "..",
        "\ud800.\ud800.\ud800",
    ]
    for each in forged:
        assert await identity(server, each) == 401, each
        assert "authenticated" not in await reviewed(raw, each.encode("utf-8", "replace").decode()), each
    assert isinstance(await identity(server, token), dict)


async def test_a_server_that_never_made_a_token_believes_none(server, raw):
    claims = claims_of(await asked(raw))
    async with ApiServer(kinds=KINDS) as other:
        made = await Raw(other.handler).post(ACCOUNTS, {"metadata": {"name": "robot"}})
        about = claims["kubernetes.io"] | {"serviceaccount": {"name": "robot", "uid": made.body["metadata"]["uid"]}}
        for key in (b"", b"\0", b"\0" * 32, b"\0" * 64):
            assert await identity(other, signed(claims | {"kubernetes.io": about}, key)) == 401


async def test_tokens_of_another_server_are_none_here(tmp_path):
    async with ApiServer(kinds=KINDS, storage=tmp_path / "a") as one:
        await Raw(one.handler).post(ACCOUNTS, {"metadata": {"name": "robot"}})
        token = await asked(Raw(one.handler))
    # the very same objects, and another key
    async with ApiServer(kinds=KINDS, storage=tmp_path / "a") as again, ApiServer(kinds=KINDS) as other:
        record, _ = await again.storage.get("core/serviceaccounts/default/robot")
        await other.storage.put(record.key, record.value, expect=0)
        assert isinstance(await identity(other, await asked(Raw(other.handler))), dict)
        assert await identity(other, token) == 401
        # while a restart changes nothing
        assert isinstance(await identity(again, token), dict)
    assert [path.name for path in (tmp_path / "a").iterdir() if path.stat().st_mode & 0o077] == []


async def test_an_audit_names_a_token_and_does_not_show_it(caplog):
    events = []
    async with ApiServer(kinds=KINDS, audit=events.append) as server:
        raw = Raw(server.handler)
        await raw.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        token = await asked(raw)
        await sent_with(server, token)
        await reviewed(raw, token)
        refused = await sent_with(server, f"{token}x")
    issued = {"authentication.kubernetes.io/issued-credential-id": f"JTI={claims_of(token)['jti']}"}
    made = next(event for event in events if event["objectRef"].get("subresource") == "token")
    used = next(event for event in events if event["objectRef"]["resource"] == "configmaps")
    assert made["annotations"].items() >= issued.items()
    assert used["user"]["extra"]["authentication.kubernetes.io/credential-id"] == list(issued.values())
    assert refused.code == 401
    for shown in (json.dumps(events), caplog.text, refused.text.decode()):
        assert token.rpartition(".")[2] not in shown


async def test_admission_sees_the_request_and_never_the_token():
    seen = []

    async def look(attributes):
        if attributes.subresource == "token":
            seen.append((attributes.name, attributes.obj["kind"], attributes.obj.get("status")))
            if "elsewhere" in attributes.obj["spec"].get("audiences", ()):
                raise attributes.refused("tokens are for here")

    async with ApiServer(kinds=KINDS, admission=[look]) as server:
        raw = Raw(server.handler)
        await raw.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        await asked(raw)
        refused = await raw.post(f"{ACCOUNTS}/robot/token", {"spec": {"audiences": ["elsewhere"]}})
    assert seen == [("robot", "TokenRequest", None)] * 2
    assert (refused.code, refused.body["message"]) == (
        403,
        'serviceaccounts "robot" is forbidden: tokens are for here',
    )


async def test_a_token_leaves_its_account_as_it_was(raw):
    before = (await raw.get(f"{ACCOUNTS}/robot")).body
    await asked(raw)
    assert (await raw.get(f"{ACCOUNTS}/robot")).body == before


async def test_other_programs_can_verify_a_token(server, raw):
    """A program that trusts the issuer checks tokens with the published key alone."""
    token = await asked(raw)
    (key,) = (await raw.get("/openid/v1/jwks")).body["keys"]
    point = [int.from_bytes(base64.urlsafe_b64decode(key[name] + "=")) for name in ("x", "y")]
    public = ec.EllipticCurvePublicNumbers(*point, ec.SECP256R1()).public_key()
    text, _, signature = token.rpartition(".")
    raw_signature = base64.urlsafe_b64decode(signature + "==")
    halves = int.from_bytes(raw_signature[:32]), int.from_bytes(raw_signature[32:])
    public.verify(utils.encode_dss_signature(*halves), text.encode(), ec.ECDSA(hashes.SHA256()))
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert header == {"alg": "ES256", "kid": key["kid"]}
    about = (await raw.get("/.well-known/openid-configuration")).body
    assert about["issuer"] == claims_of(token)["iss"]
    assert about["id_token_signing_alg_values_supported"] == [header["alg"]]


async def test_a_host_that_is_no_text_gets_the_documents_too(server):
    """A port passes a header with other bytes on as surrogates, which are no JSON."""
    wire = HttpRequest("GET", "/.well-known/openid-configuration", headers=(("Host", "\udcff.example.com"),))
    answer = await server.handle(wire)
    assert answer.status == 200
    assert json.loads(answer.body)["jwks_uri"] == "https://?.example.com/openid/v1/jwks"


async def test_the_published_key_signs_nothing(server, raw):
    """A token that is signed with HS256 and the public key as the secret is a well-known attack."""
    token = await asked(raw)
    (key,) = (await raw.get("/openid/v1/jwks")).body["keys"]
    for secret in (json.dumps(key).encode(), key["x"].encode(), b""):
        assert await identity(server, signed(claims_of(token), secret)) == 401
    assert await identity(server, token.rpartition(".")[0] + ".") == 401
    assert await identity(server, f"{part({'alg': 'none'})}.{token.split('.')[1]}.") == 401
    assert await identity(server, token) != 401


async def test_tokens_of_earlier_versions_are_still_accepted(server, raw):
    """Before the key was published, tokens were signed with HS256 and a secret in the same store."""
    token = await asked(raw)
    record, _ = await server.storage.get(".server/tokens/key")
    assert (await identity(server, signed(claims_of(token), record.value)))["username"].endswith(":robot")
