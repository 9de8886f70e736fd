"""Certificates that are replaced under an operator that leads: its own, the server's, and the authority's."""

import shutil

import pytest
from faults.leading import KEYS, leading, now
from faults.tls_proxy import TlsProxy
from faults.workload import until

from samples.certificates import Authority
from steersman import Client, ObjectMeta
from steersman.client import BearerToken, Config
from steersman.errors import ApiError, ConnectionFailed
from steersman.kinds.rbac_v1 import ClusterRoleBinding, RoleRef, Subject
from steersman.transport import TlsMaterial

pytestmark = pytest.mark.slow

USER = "certified"


@pytest.fixture
def authority(tmp_path):
    """Makes certificate authorities."""

    def make(name):
        folder = tmp_path / name
        folder.mkdir()
        return Authority(folder)

    return make


def replaced(file, *sources):
    """Write a file anew, as a whole, from others."""
    new = file.with_suffix(".new")
    new.write_bytes(b"".join(source.read_bytes() for source in sources))
    new.replace(file)


@pytest.fixture
async def trusted(broken_engine, room, tmp_path):
    """Has kube-apiserver trust the client certificates of other authorities: ``trusted(authority)``, until the end."""
    own = tmp_path / "engine.crt"
    shutil.copy(broken_engine.ca_file, own)
    async with broken_engine.client(namespace=room, field_manager="user") as client:
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=room),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin"),
            subjects=[Subject(kind="User", name=USER, api_group="rbac.authorization.k8s.io")],
        )
        await client.create(binding)

    async def knows(pair):
        tls = TlsMaterial(ca_file=str(own), certificate_file=str(pair[0]), key_file=str(pair[1]))
        async with Client.connect(Config(broken_engine.url, tls=tls)) as client:
            try:
                await client.request("GET", "/api/v1/namespaces/default")
            except ApiError:
                return False
            return True

    async def trust(authority, *, unknown=None, known=None):
        # in place: the server reads the file that it was started with again, whenever it changes
        broken_engine.ca_file.write_bytes(own.read_bytes() + (authority.file.read_bytes() if authority else b""))
        begun = now()
        while (known and not await knows(known)) or (unknown and await knows(unknown)):
            assert now() < begun + 90, "kube-apiserver reads its file again"

    yield trust
    broken_engine.ca_file.write_bytes(own.read_bytes())


async def test_the_certificate_of_the_operator_is_replaced(broken_engine, proxy, room, authority, trusted, tmp_path):
    """kube-apiserver then refuses the old one; connections that were made with it are of no more use."""
    first, second = authority("first"), authority("second")
    old, new = first.issue(USER), second.issue(USER)
    certificate, key, ca = (tmp_path / name for name in ("client.crt", "client.key", "server-ca.crt"))
    shutil.copy(broken_engine.ca_file, ca)
    await trusted(first, known=old)
    replaced(certificate, old[0])
    replaced(key, old[1])
    tls = TlsMaterial(ca_file=str(ca), certificate_file=str(certificate), key_file=str(key))
    async with leading(broken_engine, Config(proxy.url, tls=tls), room) as leader:
        begun = now()
        # two files are never replaced at one moment: between the two they do not belong together
        replaced(certificate, new[0])
        await leader.more(KEYS)
        replaced(key, new[1])
        await trusted(second, known=new, unknown=old)
        await leader.more(KEYS)
        proxy.cut()
        await leader.asks(seconds=60.0)
        await leader.tells()
        assert leader.leads_its_first_term()
        assert leader.codes(begun)[401] <= KEYS + 4


@pytest.mark.parametrize("early", [True, False], ids=["bundle first", "server first"])
async def test_the_server_gets_a_certificate_of_another_authority(broken_engine, room, authority, tmp_path, early):
    """The bundle that the operator trusts is replaced before, as it should be, or four seconds too late."""
    first, second = authority("first"), authority("second")
    bundle = tmp_path / "bundle.crt"
    replaced(bundle, first.file)
    async with TlsProxy(broken_engine, first.issue("127.0.0.1")).serve() as proxy:
        auth = BearerToken(broken_engine.admin_token)
        config = Config(proxy.url, tls=TlsMaterial(ca_file=str(bundle)), auth=auth)
        async with leading(broken_engine, config, room) as leader:
            if early:
                replaced(bundle, first.file, second.file)
                await leader.more(KEYS)
            await proxy.show(second.issue("127.0.0.1"))
            shown = now()
            if not early:
                await until(lambda: now() > shown + 4, "four seconds have passed")
                with pytest.raises(ConnectionFailed, match="is not trusted"):
                    async with Client.connect(config) as client:
                        await client.request("GET", "/version")
                replaced(bundle, second.file)
            ended = now()
            await leader.more(KEYS, seconds=60.0)
            assert now() - ended < 15
            await leader.asks(seconds=60.0)
            await leader.tells()
            assert leader.leads_its_first_term()
            if early:
                replaced(bundle, second.file)
                proxy.cut()
                await leader.asks(seconds=60.0)
                assert leader.leads_its_first_term()
            else:
                assert leader.rate(shown, ended) < 50
