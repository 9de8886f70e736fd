"""The server on a port: TLS, who is let in, and the kubeconfig."""

import json
import os
import ssl

import pytest
from aiohttp import ClientConnectorCertificateError, ClientError, ClientSession, TCPConnector

from steersman import Client
from steersman.apiserver import ApiServer, MemoryStorage, User
from steersman.apiserver.chain import Authentication, Rbac, Reviews, chain
from steersman.apiserver.serving import Authority, serve, write_kubeconfig
from steersman.client.configuration.discovery_order import discover_config
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import ObjectMeta


def connect(kubeconfig):
    return Client.connect(discover_config(kubeconfig=str(kubeconfig)), field_manager="tests")


def contexts(authority, credentials=None, folder=None):
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if credentials is not None:
        file = folder / "client.pem"
        file.write_bytes(credentials.certificate + credentials.key)
        context.load_cert_chain(file)
    return context


async def test_our_client_works_by_the_kubeconfig_and_only_its_owner_reads_it(tmp_path):
    async with serve(ApiServer(kinds=["v1"]), folder=tmp_path / "a") as served:
        assert served.url == f"https://127.0.0.1:{served.port}"
        for name in ("kubeconfig", "authority.pem"):
            assert (tmp_path / "a" / name).stat().st_mode & 0o777 == 0o600
        assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["authority.pem", "kubeconfig"]
        async with connect(served.kubeconfig) as client:
            made = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
            assert (await client.get(ConfigMap, "default/a")).metadata.uid == made.metadata.uid


async def test_without_credentials_only_health_and_version_are_served(tmp_path):
    async with serve(ApiServer(kinds=["v1"]), folder=tmp_path) as served:
        authority = Authority(tmp_path)
        async with ClientSession(connector=TCPConnector(ssl=contexts(authority))) as session:
            for path in (
                "/",
                "/api",
                "/api/v1",
                "/api/v1/namespaces",
                "/apis",
                "/openapi/v3",
                "/nothing",
                "/healthz/x",
            ):
                for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                    async with session.request(method, served.url + path) as answer:
                        assert answer.status == 401, (method, path)
                        assert json.loads(await answer.read())["message"] == "Unauthorized"
            for path in ("/healthz", "/livez", "/readyz", "/version"):
                async with session.get(served.url + path) as answer:
                    assert answer.status == 200, path
                async with session.post(served.url + path) as answer:
                    assert answer.status == 401, path
        with pytest.raises(ClientConnectorCertificateError):
            async with ClientSession() as session, session.get(served.url + "/healthz"):
                pass


async def test_a_failed_authentication_is_audited_without_its_credential(tmp_path):
    """Guessed tokens would otherwise leave no trace."""
    events = []
    async with serve(ApiServer(kinds=["v1"], audit=events.append), folder=tmp_path) as served:
        del events[:]
        async with ClientSession(connector=TCPConnector(ssl=contexts(Authority(tmp_path)))) as session:
            for headers, data in (({}, None), ({"Authorization": "Bearer guessed-secret"}, None), ({}, b"x" * 500_000)):
                url = f"{served.url}/api/v1/namespaces/default/secrets"
                async with session.request("POST" if data else "GET", url, headers=headers, data=data) as answer:
                    assert answer.status == 401
                    assert answer.headers["Audit-Id"] == events[-1]["auditID"]
    none, guessed, long = events
    assert none["responseStatus"] == {
        "metadata": {},
        "message": "Authentication failed, no credentials provided",
        "code": 401,
    }
    assert (none["user"], none["stage"], none["verb"], none["sourceIPs"]) == (
        {},
        "ResponseStarted",
        "list",
        ["127.0.0.1"],
    )
    assert guessed["responseStatus"]["message"] == "Authentication failed, attempted: bearer"
    assert "guessed-secret" not in json.dumps(events)
    assert (long["verb"], long["objectRef"]["resource"]) == ("create", "secrets")


async def test_a_certificate_names_a_user_and_its_groups_and_a_foreign_one_is_rejected(tmp_path):
    async with MemoryStorage() as storage:
        rbac = Rbac(storage)
        authentication = Authentication(tokens={"secret": User(name="robot", groups=("system:masters",))})
        server = ApiServer(
            kinds=["v1"],
            storage=storage,
            definitions=Reviews(rbac, authentication).definitions(),
            chain=chain(authorizer=rbac, authentication=authentication),
        )
        async with serve(server, folder=tmp_path) as served:
            authority = Authority(tmp_path)
            staff = authority.client("kim", groups=("staff", "system:masters"))
            path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
            with_certificate = TCPConnector(ssl=contexts(authority, staff, tmp_path))
            async with ClientSession(connector=with_certificate) as session:
                async with session.post(served.url + path, json={}) as answer:
                    user = (await answer.json())["status"]["userInfo"]
                assert (user["username"], user["groups"]) == (
                    "kim",
                    ["staff", "system:masters", "system:authenticated"],
                )
                assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
            headers = {"Authorization": "Bearer secret"}
            async with (
                ClientSession(connector=TCPConnector(ssl=contexts(authority)), headers=headers) as session,
                session.get(f"{served.url}/api/v1/namespaces") as answer,
            ):
                assert answer.status == 200
            write_kubeconfig(
                tmp_path / "lee", url=served.url, authority=authority.certificate, user=authority.client("lee")
            )
            async with connect(tmp_path / "lee") as client:
                with pytest.raises(Forbidden, match='User "lee" cannot'):
                    await client.get(Namespace, "default")
            stranger = Authority(tmp_path / "elsewhere").client("admin", groups=("system:masters",))
            (tmp_path / "b").mkdir()
            with_foreign = TCPConnector(ssl=contexts(authority, stranger, tmp_path / "b"))
            async with ClientSession(connector=with_foreign) as session:
                with pytest.raises(ClientError):
                    async with session.get(f"{served.url}/api/v1/namespaces"):
                        pass


def give_away(path, monkeypatch):
    """Make a file another user's: root can, and any other user gets another uid for this process."""
    own = os.geteuid()
    if own == 0:
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)


def test_an_authority_that_another_user_owns_is_not_used(tmp_path, monkeypatch):
    """The user who planted it has its key, and would be an administrator."""
    Authority(tmp_path)
    give_away(tmp_path / "authority.pem", monkeypatch)
    with pytest.raises(PermissionError, match="owns it, and this process is user"):
        Authority(tmp_path)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o622])
def test_an_authority_that_others_can_read_or_write_is_not_used(tmp_path, mode):
    Authority(tmp_path)
    (tmp_path / "authority.pem").chmod(mode)
    with pytest.raises(PermissionError, match="other users can read it; chmod 600 it if you trust it"):
        Authority(tmp_path)


def test_an_authority_behind_a_link_is_not_used(tmp_path):
    Authority(tmp_path / "real")
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "authority.pem").symlink_to(tmp_path / "real" / "authority.pem")
    with pytest.raises(PermissionError, match="it is a symbolic link"):
        Authority(tmp_path / "planted")


@pytest.mark.parametrize("planted", ["pipe", "link to a pipe", "device", "long file"])
def test_a_planted_kubeconfig_neither_blocks_the_start_nor_is_replaced(tmp_path, planted):
    """Where other users can write, such as /tmp, a pipe in place of the file kept the server from starting, or ending."""
    path = pipe = tmp_path / "kubeconfig"
    match planted:
        case "pipe" | "link to a pipe":
            if planted != "pipe":
                pipe = tmp_path / "pipe"
                path.symlink_to(pipe)
            os.mkfifo(pipe)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.write_text("# long\n" * 100_000)
    before = path.lstat()
    with pytest.raises(ValueError, match="already exists and is not a kubeconfig of this server; remove it"):
        write_kubeconfig(path, url="https://127.0.0.1:2", authority=b"x", user="token")
    assert path.lstat().st_ino == before.st_ino


async def test_a_kubeconfig_is_good_after_a_restart(tmp_path):
    async with serve(ApiServer(kinds=["v1"]), folder=tmp_path) as served:
        port = served.port
        before = tmp_path / "before"
        before.write_bytes(served.kubeconfig.read_bytes())
    async with (
        serve(ApiServer(kinds=["v1"]), folder=tmp_path, port=port, kubeconfig=tmp_path / "own") as served,
        connect(before) as client,
    ):
        assert (await client.get(Namespace, "default")).metadata.name == "default"
        assert served.kubeconfig == tmp_path / "own"
