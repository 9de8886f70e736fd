"""``steersman migrate``: all objects reach the storage version, whatever happens meanwhile, and only then old versions go."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251 - seeded by the run
from typing import Any

import msgspec
import pytest

from samples import portions
from samples.ports import free_port
from samples.servers import Embedded
from steersman import Client
from steersman.aio import Supervisor, name_suffix
from steersman.cli import main
from steersman.cli.failure import Failure
from steersman.cli.migration.definition import PROGRESS, read_definition, wait_until_used
from steersman.cli.migration.object_rewrites import Rewriting
from steersman.client import MergePatch
from steersman.errors import ApiError, Conflict, InternalError, NotFound
from steersman.objects import Key, Kind, Unstructured
from steersman.testing import eventually
from steersman.transport import CertificateIssuer, HttpListener, ServerResponse, ServerTls
from steersman.wire import HttpRequest

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMESPACES = ("default", "kube-public", "kube-system")
#: Objects and kills of the long test.
OBJECTS = portions.count(sample=400, of=20_000)
KILLS = portions.count(sample=3, of=20)
#: Objects a second: the first record of the progress, after 100 objects, must not be the last.
RATE = portions.count(sample=50, of=1_000)
KIND = "Widget"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def versions(storage: str, *names: str) -> list[dict[str, Any]]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    # the column tells which definition the server uses
    column = {"name": f"stored {storage}", "type": "string", "jsonPath": ".spec.number"}
    return [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": [column],
        }
        for name in names
    ]


class Widgets:
    """A kind with two versions, whose objects are stored in the first one."""

    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self.group = f"t{name_suffix()}.migrate.test"
        self.name = f"widgets.{self.group}"
        self.client = client
        self.kubeconfig = str(kubeconfig)

    @property
    def old(self) -> Kind:
        return Kind(f"{self.group}/v1", KIND)

    @property
    def new(self) -> Kind:
        return Kind(f"{self.group}/v2", KIND)

    async def install(self) -> None:
        await self.client.create(
            Unstructured(
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": {"name": self.name},
                    "spec": {
                        "group": self.group,
                        "names": {"kind": KIND, "plural": "widgets"},
                        "scope": "Namespaced",
                        "versions": versions("v1", "v1", "v2"),
                    },
                }
            )
        )
        await self._wait_until_used("stored v1")

    async def _wait_until_used(self, column: str) -> None:
        """Wait until the server uses the definition with this column: no event says so."""
        path = f"/apis/{self.group}/v2/widgets?limit=1"
        async with asyncio.timeout(60):
            while True:
                with suppress(ApiError):
                    if f'"{column}"'.encode() in await self.client.request("GET", path, accept=TABLE):
                        return
                await asyncio.sleep(0.02)

    async def create(self, count: int) -> list[str]:
        """Store objects in the first version; returns their keys."""
        keys = [f"{NAMESPACES[number % len(NAMESPACES)]}/widget-{number}" for number in range(count)]
        waiting = iter(keys)

        async def work() -> None:
            for key in waiting:
                namespace, _, name = key.partition("/")
                await self.client.create(
                    Unstructured(
                        {
                            "apiVersion": f"{self.group}/v1",
                            "kind": KIND,
                            "metadata": {"namespace": namespace, "name": name},
                            "spec": {"number": name},
                        }
                    )
                )

        async with Supervisor() as tasks:
            for number in range(8):
                tasks.start(work(), name=f"creating {number}")
        return keys

    async def store_in(self, version: str) -> None:
        """Change the storage version, and wait until the server uses it."""
        await self.client.patch(CRD, self.name, MergePatch({"spec": {"versions": versions(version, "v1", "v2")}}))
        await self._wait_until_used(f"stored {version}")

    async def stored(self) -> list[str]:
        return (await self.client.get(CRD, self.name)).get("status", "storedVersions")

    async def progress(self) -> str | None:
        return ((await self.client.get(CRD, self.name)).get("metadata", "annotations") or {}).get(PROGRESS)

    async def only_new(self) -> None:
        """Take the first version out of the definition: an object that is stored in it could not be read any more."""
        await self.client.patch(CRD, self.name, MergePatch({"spec": {"versions": versions("v2", "v2")}}))

    async def keys(self) -> set[str]:
        return {str(each.key) async for each in self.client.iterate(self.new)}

    def run(self, *options: str) -> int:
        return main(["migrate", self.name, "--kubeconfig", self.kubeconfig, *options])

    async def rewritten(self, *options: str) -> int:
        """As `migrated`, without the server's own migration."""
        return await self.migrated("--by-client", *options)

    async def migrated(self, *options: str) -> int:
        """Run the command in a thread, as a process of its own would."""
        return await asyncio.to_thread(self.run, *options)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("embedded")) as embedded:
        yield embedded


@pytest.fixture(params=["engine", "embedded"])
async def widgets(request: pytest.FixtureRequest) -> AsyncIterator[Widgets]:
    server = request.getfixturevalue(request.param)
    async with server.client(field_manager="tests") as client:
        widgets = Widgets(client, server.kubeconfig)
        await widgets.install()
        yield widgets
        await client.delete(CRD, widgets.name)


async def test_objects_reach_the_storage_version(widgets: Widgets, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it, the old version could never be removed from the definition."""
    keys = await widgets.create(30)
    await widgets.store_in("v2")
    assert await widgets.stored() == ["v1", "v2"]
    assert await widgets.rewritten("--dry-run") == 0
    said = capsys.readouterr().out
    assert "would rewrite 30 objects in v2" in said
    assert "  default: 10 objects\n  kube-public: 10 objects\n" in said
    assert "storedVersions: [v1, v2] would become [v2]" in said
    assert await widgets.stored() == ["v1", "v2"], "a dry run writes nothing"
    assert await widgets.rewritten() == 0
    assert "30 objects rewritten in v2" in capsys.readouterr().out
    assert await widgets.stored() == ["v2"]
    assert await widgets.progress() is None
    await widgets.only_new()
    assert await widgets.keys() == set(keys)
    assert await widgets.rewritten() == 0
    assert "nothing to do" in capsys.readouterr().out


async def test_no_object_is_written_before_the_server_uses_the_storage_version(
    widgets: Widgets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just after the change, the server writes objects in the former version: they would count as rewritten."""
    definition = await read_definition(widgets.client, widgets.name)
    await wait_until_used(widgets.client, definition)
    with monkeypatch.context() as impatient:
        impatient.setattr("steersman.cli.migration.definition._PATIENCE", 0)
        with pytest.raises(Failure, match="does not store objects in v2 yet"):
            await wait_until_used(widgets.client, replace(definition, storage="v2"))
    await widgets.client.patch(CRD, widgets.name, MergePatch({"spec": {"versions": versions("v2", "v1", "v2")}}))
    await wait_until_used(widgets.client, await read_definition(widgets.client, widgets.name))


async def test_a_definition_that_changes_meanwhile_keeps_its_stored_versions(
    widgets: Widgets, capsys: pytest.CaptureFixture[str]
) -> None:
    """Objects written while the old version was stored again would be lost with it."""
    await widgets.create(60)
    await widgets.store_in("v2")
    before = await newest_version(widgets)
    async with Supervisor() as tasks:
        run = tasks.start(widgets.rewritten("--rate", "8"), name="migrate")
        async with asyncio.timeout(60):
            while await newest_version(widgets) == before:  # noqa: ASYNC110 - the command is another program
                await asyncio.sleep(0.05)
        for version in ("v1", "v2"):
            await widgets.client.patch(
                CRD, widgets.name, MergePatch({"spec": {"versions": versions(version, "v1", "v2")}})
            )
    assert run.result() == 1
    assert "changed while its objects were rewritten" in capsys.readouterr().err
    assert set(await widgets.stored()) == {"v1", "v2"}


async def newest_version(widgets: Widgets) -> int:
    """The version of the object that was written last."""
    return max([int(each["metadata"]["resourceVersion"]) async for each in widgets.client.iterate(widgets.new)])


async def test_a_refused_object_keeps_the_old_version(widgets: Widgets, capsys: pytest.CaptureFixture[str]) -> None:
    """An object that could not be rewritten is named, and the version in which it is stored stays."""
    await widgets.create(9)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": widgets.name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [widgets.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"]}
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'widget-4'", "message": "not this one"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": widgets.name},
        "spec": {"policyName": widgets.name, "validationActions": ["Deny"]},
    }
    await widgets.client.create(Unstructured(policy))
    await widgets.client.create(Unstructured(binding))
    try:
        await wait_until_refused(widgets, "kube-public/widget-4", refused=True)
        await widgets.store_in("v2")
        assert await widgets.rewritten() == 1
        said = capsys.readouterr()
        assert "8 objects rewritten in v2, 1 refused" in said.out
        assert "refused: kube-public/widget-4: " in said.out
        assert "not this one" in said.out
        assert await widgets.stored() == ["v1", "v2"]
    finally:
        await widgets.client.delete(
            Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"), widgets.name
        )
        await widgets.client.delete(Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"), widgets.name)
    await wait_until_refused(widgets, "kube-public/widget-4", refused=False)
    assert await widgets.rewritten() == 0
    assert await widgets.stored() == ["v2"]


async def converted(request: HttpRequest) -> ServerResponse:
    """Answer as a conversion webhook whose versions have the same fields."""
    review = msgspec.json.decode(request.body)
    asked = review.pop("request")
    objects = [each | {"apiVersion": asked["desiredAPIVersion"]} for each in asked["objects"]]
    review["response"] = {"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    headers = (("Content-Type", "application/json"),)
    return ServerResponse(status=200, headers=headers, body=msgspec.json.encode(review))


async def test_a_webhook_that_is_down_refuses_no_object(
    widgets: Widgets, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user would otherwise correct objects in which nothing is wrong."""
    await widgets.create(9)
    issuer, port = CertificateIssuer.create(), free_port()
    url, pair = f"https://127.0.0.1:{port}/convert", issuer.server(("127.0.0.1",))
    config = {"url": url, "caBundle": base64.b64encode(issuer.certificate).decode()}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}
    changed = {"spec": {"versions": versions("v2", "v1", "v2"), "conversion": conversion}}
    await widgets.client.patch(CRD, widgets.name, MergePatch(changed))
    with monkeypatch.context() as impatient:
        impatient.setattr("steersman.cli.migration.webhook_outage._PATIENCE", 0.5)
        assert await widgets.rewritten() == 1
        rewriting = Rewriting(
            *(widgets.client, await read_definition(widgets.client, widgets.name)),
            per_second=200,
            report=lambda done, total: None,
        )
        with pytest.raises(InternalError, match="connection refused"):
            await rewriting.run([Key("default", "widget-0")])
        assert not rewriting.result.failures
    said = capsys.readouterr()
    assert f"the server cannot call the webhook {url}; retrying" in said.err
    assert f"cannot call the webhook {url}: start it, then run the command again" in said.err
    assert "refused" not in said.out
    told = ""
    async with Supervisor() as tasks:
        run = tasks.start(widgets.rewritten(), name="migrate")
        async with asyncio.timeout(60):
            while "retrying" not in told:
                told += capsys.readouterr().err
                await asyncio.sleep(0.02)
        tls = ServerTls(certificate_data=pair.certificate, key_data=pair.key)
        async with HttpListener(converted, port=port, tls=tls):
            assert await run == 0
    assert told.count("retrying") == 1
    assert await widgets.stored() == ["v2"]


async def wait_until_refused(widgets: Widgets, key: str, *, refused: bool) -> None:
    """Wait until the server uses a policy, or does so no longer: no event says so."""
    async with asyncio.timeout(60):
        while True:
            try:
                await widgets.client.patch(widgets.old, key, MergePatch({}), dry_run=True)
                is_refused = False
            except ApiError:
                is_refused = True
            if is_refused is refused:
                return
            await asyncio.sleep(0.05)


READS_DEFINITIONS = {
    "apiGroups": ["apiextensions.k8s.io"],
    "resources": ["customresourcedefinitions"],
    "verbs": ["get"],
}


@asynccontextmanager
async def limited(widgets: Widgets, folder: Path, rules: list[dict[str, Any]]) -> AsyncGenerator[None]:
    """Run the command as a user with these rules alone."""
    role, api = f"limited-{widgets.name}", "rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    for kind, fields in (
        ("ClusterRole", {"rules": rules}),
        ("ClusterRoleBinding", {"roleRef": reference, "subjects": [subject]}),
    ):
        await widgets.client.create(
            Unstructured({"apiVersion": api, "kind": kind, "metadata": {"name": role}, **fields})
        )
    tree = msgspec.yaml.decode(await asyncio.to_thread(Path(widgets.kubeconfig).read_bytes))
    for user in tree["users"]:
        user["user"]["as"] = "system:serviceaccount:default:default"
    file = folder / "kubeconfig"
    await asyncio.to_thread(file.write_bytes, msgspec.yaml.encode(tree))
    widgets.kubeconfig, before = str(file), widgets.kubeconfig
    yield
    widgets.kubeconfig = before
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        await widgets.client.delete(Kind(api, kind), role)


async def test_missing_permissions_are_named(
    widgets: Widgets, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user without rights learns which ones to ask for, before anything is written."""
    await widgets.create(1)
    await widgets.store_in("v2")
    async with limited(widgets, tmp_path, [READS_DEFINITIONS]):
        assert await widgets.rewritten() == 1
    said = capsys.readouterr().err
    assert "may not patch customresourcedefinitions.apiextensions.k8s.io/status, list widgets." in said


@pytest.mark.slow
async def test_a_killed_migration_goes_on(engine: Any, tmp_path: Path) -> None:
    """Killed again and again, beside writers and deletions, it completes, and no object is lost."""
    rng = Random(portions.seed_of("migrate"))
    async with engine.client(field_manager="tests") as client:
        widgets = Widgets(client, engine.kubeconfig)
        await widgets.install()
        keys = await widgets.create(OBJECTS)
        await widgets.store_in("v2")
        async with Supervisor() as tasks:
            tasks.start(_disturb(widgets, keys, rng), name="writers")
            hits = 0
            for _ in range(KILLS):
                process = await _start(widgets, rate=RATE)
                before = await widgets.progress()
                while process.returncode is None and await widgets.progress() == before:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                await asyncio.sleep(rng.uniform(0, 0.3))  # the moment of a kill is no synchronization
                if process.returncode is None:
                    os.kill(process.pid, signal.SIGKILL)
                await process.wait()
                hits += await widgets.stored() != ["v2"]
            process = await _start(widgets, rate=5_000)
            said, _ = await process.communicate()
            assert process.returncode == 0, said
            tasks.cancel()
        assert hits > KILLS // 2, "kills hit a migration under way"
        assert b"by an earlier run" in said or b"nothing to do" in said, said
        assert await widgets.stored() == ["v2"]
        assert await widgets.progress() is None
        await widgets.only_new()
        left = await widgets.keys()
        deleted = {key for number, key in enumerate(keys) if number % 50 == 7}
        assert {key for key in keys if key not in deleted} <= left
        async for each in client.iterate(widgets.new):
            assert each.get("spec", "number") == each.key.name
        await client.delete(CRD, widgets.name)


async def _start(widgets: Widgets, *, rate: float) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "steersman", "migrate", widgets.name, "--kubeconfig", widgets.kubeconfig]
    return await asyncio.create_subprocess_exec(
        *command, "--by-client", "--rate", str(rate), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )


async def _disturb(widgets: Widgets, keys: list[str], rng: Random) -> None:
    """Write and delete objects without pause."""
    deleted = [key for number, key in enumerate(keys) if number % 50 == 7]
    while True:
        try:
            await widgets.client.patch(
                rng.choice((widgets.old, widgets.new)), rng.choice(keys), MergePatch({"spec": {"seen": rng.random()}})
            )
            if deleted and rng.random() < 0.1:
                await widgets.client.delete(widgets.new, deleted.pop())
        except (NotFound, Conflict):
            pass
        await asyncio.sleep(0.005)


MIGRATION = Kind("storagemigration.k8s.io/v1", "StorageVersionMigration")


@pytest.fixture
async def served_migrations(embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Widgets]:
    """Widgets on a server that could have a controller for StorageVersionMigrations; the test is that controller."""
    monkeypatch.setattr("steersman.cli.migration.server_migration._EMBEDDED", "no version has this")
    async with embedded.client(field_manager="tests") as client:
        widgets = Widgets(client, embedded.kubeconfig)
        await widgets.install()
        await widgets.create(5)
        await widgets.store_in("v2")
        yield widgets
        await client.delete(CRD, widgets.name)


async def _end_migration(widgets: Widgets, condition: dict[str, str], change: dict[str, Any] | None = None) -> str:
    """Be the controller: take the migration, change it, and report. Returns its name."""
    name = ""
    async with asyncio.timeout(60):
        while not name:
            with suppress(ApiError):
                name = next(iter([each.key.name async for each in widgets.client.iterate(MIGRATION)]), "")
            await asyncio.sleep(0.02)
    found = await widgets.client.get(MIGRATION, name)
    assert found.get("spec", "resource") == {"group": widgets.group, "resource": "widgets"}
    await widgets.client.patch(MIGRATION, name, MergePatch(change or {}))
    running = {"type": "Running", "status": "True", "reason": "Started"}
    since = {"lastTransitionTime": "2026-01-02T03:04:05Z", "message": ""}
    for conditions in ([since | running], [since | running | {"status": "False"}, since | condition]):
        await widgets.client.patch(
            MIGRATION, name, MergePatch({"status": {"conditions": conditions}}), subresource="status"
        )
    return name


async def test_the_server_migrates(served_migrations: Widgets, capsys: pytest.CaptureFixture[str]) -> None:
    """The server's controller is nearer to the objects."""
    async with Supervisor() as tasks:
        run = tasks.start(served_migrations.migrated(), name="migrate")
        await _end_migration(served_migrations, {"type": "Succeeded", "status": "True", "reason": "Done"})
    assert run.result() == 0
    said = capsys.readouterr()
    assert "waiting for StorageVersionMigration steersman-" in said.err
    assert "the server has rewritten all objects in v2" in said.out
    assert await served_migrations.stored() == ["v2"]
    assert [each async for each in served_migrations.client.iterate(MIGRATION)] == []


async def test_a_result_for_a_deleted_definition_does_not_count(
    served_migrations: Widgets, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed run left its migration, then the definition was deleted and created again: its objects are not rewritten."""
    widgets = served_migrations
    async with Supervisor() as tasks:
        run = tasks.start(widgets.migrated(), name="migrate")
        held = {"metadata": {"finalizers": ["migrate.test/held"]}}  # the migration stays, as after a kill
        left = await _end_migration(widgets, {"type": "Succeeded", "status": "True", "reason": "Done"}, held)
    assert run.result() == 0
    before = await widgets.client.get(CRD, widgets.name)
    await widgets.client.delete(CRD, widgets.name)
    await eventually(widgets.client, CRD, widgets.name, gone=True)
    await widgets.install()
    keys = await widgets.create(5)
    await widgets.store_in("v2")
    assert (await widgets.client.get(CRD, widgets.name)).generation == before.generation
    monkeypatch.setattr("steersman.cli.migration.server_migration._PATIENCE", 0.5)
    assert await widgets.migrated() == 0
    assert "5 objects rewritten in v2" in capsys.readouterr().out
    await widgets.only_new()
    assert await widgets.keys() == set(keys)
    await widgets.client.patch(MIGRATION, left, MergePatch({"metadata": {"finalizers": None}}))


async def test_the_server_fails_to_migrate(served_migrations: Widgets, capsys: pytest.CaptureFixture[str]) -> None:
    """The stored versions stay, and the command says how to go on."""
    failed = {"type": "Failed", "status": "True", "reason": "Broken", "message": "cannot convert"}
    async with Supervisor() as tasks:
        run = tasks.start(served_migrations.migrated(), name="migrate")
        await _end_migration(served_migrations, failed)
    assert run.result() == 1
    assert "could not migrate (cannot convert); run again with --by-client" in capsys.readouterr().err
    assert await served_migrations.stored() == ["v1", "v2"]


async def test_a_server_without_a_controller(
    served_migrations: Widgets, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that no controller takes would wait forever."""
    monkeypatch.setattr("steersman.cli.migration.server_migration._PATIENCE", 0.5)
    assert await served_migrations.migrated() == 0
    said = capsys.readouterr()
    assert "no controller for StorageVersionMigration" in said.err
    assert "5 objects rewritten in v2" in said.out
    assert [each async for each in served_migrations.client.iterate(MIGRATION)] == []


async def test_a_user_who_may_not_delete_the_migration(
    served_migrations: Widgets, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The objects are migrated all the same, so the old version can go."""
    widgets = served_migrations
    rules = [
        {**READS_DEFINITIONS, "verbs": ["get", "patch"]},
        {**READS_DEFINITIONS, "resources": ["customresourcedefinitions/status"], "verbs": ["patch"]},
        {"apiGroups": [widgets.group], "resources": ["widgets"], "verbs": ["list", "patch"]},
        {
            "apiGroups": ["storagemigration.k8s.io"],
            "resources": ["storageversionmigrations"],
            "verbs": ["create", "get"],
        },
    ]
    async with limited(widgets, tmp_path, rules), Supervisor() as tasks:
        run = tasks.start(widgets.migrated(), name="migrate")
        name = await _end_migration(widgets, {"type": "Succeeded", "status": "True", "reason": "Done"})
        assert await run == 0
    assert f"this user may not delete StorageVersionMigration {name}" in capsys.readouterr().err
    assert await widgets.stored() == ["v2"]
    await widgets.client.delete(MIGRATION, name)
