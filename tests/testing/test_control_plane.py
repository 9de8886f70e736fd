"""What the fixture gives: clients, a namespace, an operator that runs, and an end without a trace."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading

import pytest

from samples.page_operator import Page, manager, page, reconcile
from steersman import (
    Client,
    Context,
    Done,
    Manager,
    MergePatch,
    ObjectMeta,
    Request,
    Requeue,
    Resource,
    Spec,
    Unstructured,
)
from steersman.errors import Forbidden
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, Pod, PodSpec, Secret
from steersman.testing import PodRunner, PodRunning, eventually
from steersman.testing.operators import OperatorFailed

ROLE = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    },
]


async def test_bare_names_are_in_the_namespace_of_the_test(control_plane):
    made = await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="here")))
    assert made.metadata.namespace == control_plane.namespace
    assert control_plane.namespace.startswith("test-bare-names-are-in-the-namespace-of-the-test-")
    assert control_plane.server == "embedded"


async def test_others_may_do_what_roles_allow(control_plane):
    client = control_plane.client
    for tree in ROLE:
        tree["metadata"]["namespace"] = control_plane.namespace
        await client.create(Unstructured(tree))
    await client.create(ConfigMap(metadata=ObjectMeta(name="here")))
    async with control_plane.client_as("jane") as jane:
        await jane.get(ConfigMap, "here")
        with pytest.raises(Forbidden, match='User "jane" cannot get resource "secrets"'):
            await jane.get(Secret, "here")
    # leaving one client leaves the way of the others open
    await client.get(ConfigMap, "here")


async def test_an_operator_works_in_the_namespaces_of_the_test(control_plane):
    """What another test left behind on a shared server is not this test's."""
    client = control_plane.client
    mine = await control_plane.create_namespace("mine")
    async with control_plane.running(manager) as operator:
        await client.create(Namespace(metadata=ObjectMeta(name="left-by-another-test")))
        for namespace in ("left-by-another-test", mine, control_plane.namespace):
            left = page("home")
            left.metadata.namespace = namespace
            await client.create(left)
        await operator.drained()
        assert {record.request.key.namespace for _, record in operator.runs} == {mine, control_plane.namespace}
    async with control_plane.running(manager, namespaces=()) as operator:
        await operator.drained()
        assert [str(record.request.key) for _, record in operator.runs_of("left-by-another-test/home")]


async def test_an_operator_can_be_run_as_its_service_account(control_plane):
    """What its Role lacks is found here and not in production."""
    account = "system:serviceaccount:default:page-operator"
    refused = f'the operator did not start working: .*User "{account}" cannot (list|watch) resource'
    with pytest.raises(OperatorFailed, match=refused):
        async with control_plane.running(manager, user=account):
            pass


async def test_other_programs_use_the_kubeconfig(control_plane):
    """A listener comes with the first question for it, and the control plane is the same."""
    await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="here"), data={"a": "b"}))
    async with Client.connect(kubeconfig=control_plane.kubeconfig, namespace=control_plane.namespace) as other:
        assert (await other.get(ConfigMap, "here")).data == {"a": "b"}
        async with other.watch(ConfigMap, namespace=control_plane.namespace, initial_events=True) as events:
            await anext(events)
    assert control_plane.url.startswith("https://127.0.0.1:")
    assert "here" in await control_plane.kubectl("get", "configmaps", "--output=name")


async def test_the_same_operator_runs_in_every_test_and_again(control_plane):
    """A manager runs once; that of a module is run as a new one each time."""
    client = control_plane.client
    for title in ("first", "second"):
        async with control_plane.running(manager) as operator:
            await client.create(page(title, title=title))
            await operator.drained()
        assert (await client.get(ConfigMap, title)).data == {"title": title}
        assert operator.statistics.phase == "stopped"
    assert manager.phase == "starting"


async def test_reconciles_are_kept_with_their_causes(control_plane):
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page())
        await operator.drained()
        runs = operator.runs_of("home")
        assert runs == operator.runs_of(f"{control_plane.namespace}/home")
        assert [name for name, _ in runs] == ["page"]
        assert str(runs[0][1].causes) == f"Page {control_plane.namespace}/home appeared (generation 1)"
        assert runs[0][1].writes == 2


async def test_garbage_goes_and_namespaces_end(control_plane):
    client = control_plane.client
    other = await control_plane.create_namespace(f"{control_plane.namespace}-2")
    await client.create(ConfigMap(metadata=ObjectMeta(name="there", namespace=other)))
    async with control_plane.running(manager) as operator:
        await client.create(page())
        await operator.drained()
        await client.delete(Page, "home")
        await client.delete(Namespace, other)
        await control_plane.drained()
    assert await client.find(ConfigMap, "home") is None
    assert await client.find(Namespace, other) is None


async def test_pods_run(control_plane):
    client = control_plane.client
    pod = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[Container(name="web", image="web:1")]))
    async with PodRunner(client, outcome=lambda pod: PodRunning()):
        await client.create(pod)
        await control_plane.drained()
        found = await client.get(Pod, "web")
        assert (found.status.phase, found.status.container_statuses[0].ready) == ("Running", True)
        await client.delete(Pod, "web")
        await control_plane.drained()
        assert await client.find(Pod, "web") is None


async def test_an_operator_that_ends_fails_the_test(control_plane):
    async def ending() -> None:
        async with control_plane.running(manager) as operator:
            operator.manager.stop()
            await asyncio.sleep(10)

    with pytest.raises(OperatorFailed, match="the operator ended by itself during the test"):
        await ending()


async def test_an_operator_that_cannot_start_fails_the_test(control_plane):
    class Broken:
        async def __aenter__(self):
            raise OSError("no such door")

        async def __aexit__(self, *_):
            pass

    broken = Manager(name="broken")
    broken.controller(Page).run_with(reconcile)
    broken.before_leading(lambda client: Broken())
    with pytest.raises(OperatorFailed, match="the operator failed during the test: OSError: no such door"):
        async with control_plane.running(broken):
            pass


async def test_a_kind_that_is_not_installed_is_named(control_plane):
    with pytest.raises(OperatorFailed, match=r"the server does not serve Page; await control_plane.install\(Page\)"):
        async with control_plane.running(manager, install=False):
            pass


async def test_a_kind_whose_definition_was_deleted_is_installed_again(control_plane, crd_group):
    """Tests of definitions that come and go would otherwise wait for a kind that nothing installs."""

    class Note(Resource[Spec, None], group=crd_group, version="v1"):
        """A kind that comes and goes."""

    client, definition = control_plane.client, f"notes.{crd_group}"
    await control_plane.install(Note)
    await client.delete(CustomResourceDefinition, definition)
    await eventually(client, CustomResourceDefinition, definition, gone=True)
    await control_plane.install(Note)
    await client.create(Note(metadata=ObjectMeta(name="home"), spec=Spec()))


async def test_a_reconcile_that_crashes_fails_the_test_unless_that_is_allowed(control_plane):
    client = control_plane.client

    async def crashing(**options):
        async with control_plane.running(manager, **options) as operator:
            await client.create_or_patch(page(behavior="crash"), lambda found: None)
            await eventually(lambda: operator.runs)

    with pytest.raises(OperatorFailed) as failed:
        await crashing()
    lines = str(failed.value).splitlines()
    assert lines[0].endswith(
        " crashed during the test, which indicates a bug in the operator (running(..., crashes=True) allows it):"
    )
    assert lines[1:] == [f"  controller page, {control_plane.namespace}/home: TypeError: a page has no ink"]
    await crashing(crashes=True)


async def test_waiting_for_a_crashed_operator_ends_at_once(control_plane):
    async def crashing():
        async with control_plane.running(manager) as operator:
            await control_plane.client.create(page(behavior="crash"))
            await operator.drained(within=3600)

    async with asyncio.timeout(30):
        with pytest.raises(OperatorFailed, match="TypeError: a page has no ink"):
            await crashing()


async def test_signals_stay_with_the_test_run(control_plane):
    """Ctrl-C is for pytest."""
    before = signal.getsignal(signal.SIGINT)
    async with control_plane.running(manager):
        assert signal.getsignal(signal.SIGINT) is before


async def test_what_the_test_itself_raises_comes_first(control_plane):
    async def failing() -> None:
        async with control_plane.running(manager) as operator:
            await control_plane.client.create(page(behavior="crash"))
            await eventually(lambda: operator.runs)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()


async def test_writes_are_listed_one_by_one(control_plane):
    client, where = control_plane.client, control_plane.namespace
    async with control_plane.running(manager) as operator:
        with control_plane.writes() as writes:
            await client.create(page())
            await operator.drained()
            await client.patch(Page, "home", MergePatch({"spec": {"title": "bye"}}))
            await operator.drained()
            await client.patch(Page, "home", MergePatch({"spec": {"title": "never"}}), dry_run=True)
            with pytest.raises(Forbidden):
                await control_plane.client_as("jane", field_manager="").delete(Page, "home")
            await client.delete(Page, "home")
        refused = (
            f'pages.pages.test.steersman.dev "home" is forbidden: User "jane" cannot delete resource "pages" in API group '
            f'"pages.test.steersman.dev" in the namespace "{where}"'
        )
        assert str(writes).splitlines() == [
            f"create Page {where}/home by test",
            f"apply ConfigMap {where}/home by page-operator: it did not exist",
            f'update Page {where}/home (status) by page-operator: status: nothing -> {{"checks":0,"ready":true}}',
            f'patch Page {where}/home by test: spec.title: "hello" -> "bye"',
            f'apply ConfigMap {where}/home by page-operator: data.title: "hello" -> "bye"',
            f"delete Page {where}/home by steersman as jane: rejected with 403: {refused}",
            f"delete Page {where}/home by test",
        ]
        assert writes.by("page-operator").of(Page) == [writes[2]]
        assert writes.of("ConfigMap", "home") == writes.of(ConfigMap, f"{where}/home") == [writes[1], writes[4]]


async def test_a_converged_world_is_not_written_to(control_plane):
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page())
        await operator.drained()
    with control_plane.writes() as writes:
        async with control_plane.running(manager) as operator:
            await operator.drained()
            assert len(operator.runs) == 1
    assert writes == []


async def test_dry_runs_are_no_writes_and_those_of_other_programs_are(control_plane):
    client = control_plane.client
    await client.create(ConfigMap(metadata=ObjectMeta(name="home")))
    with control_plane.writes() as writes:
        await client.delete(ConfigMap, "home", dry_run=True)
        await client.create(ConfigMap(metadata=ObjectMeta(name="other")), dry_run=True)
        await client.delete_collection(ConfigMap, namespace=control_plane.namespace, dry_run=True)
    assert writes == []
    async with Client.connect(kubeconfig=control_plane.kubeconfig, field_manager="kubectl") as other:
        with control_plane.writes() as writes:
            await other.delete(ConfigMap, (control_plane.namespace, "home"))
    assert [str(each).partition(" by ")[0] for each in writes] == [f"delete ConfigMap {control_plane.namespace}/home"]


async def test_code_that_blocks_the_event_loop_is_named(control_plane, caplog):
    """A test sees which reconcile holds up all others, and in which line."""
    reported = threading.Event()

    class Reports(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "/rude in controller blocking" in record.getMessage():
                reported.set()

    async def block(ctx: Context, request: Request) -> Done | Requeue:
        if request.key.name == "rude" and not reported.wait(10):
            return Requeue()  # a busy machine delayed the loop just before, and a block is reported once
        return Done()

    rude = Manager(name="rude")
    rude.controller(ConfigMap, name="blocking").run_with(block)
    log, handler = logging.getLogger("steersman.controller"), Reports()
    log.addHandler(handler)
    try:
        async with control_plane.running(rude) as operator:
            await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="rude")))
            await operator.drained()
    finally:
        log.removeHandler(handler)
    (report,) = [each for each in caplog.messages if "was blocked" in each and "/rude in" in each]
    line = block.__code__.co_firstlineno + 1
    assert f"the reconcile of {control_plane.namespace}/rude in controller blocking at {__file__}:{line}" in report
