"""Sessions of applications: identity, records, apply, edits and the order of the end, in a simulated world."""

import asyncio
import os
import shutil
import stat
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from samples.eventually import eventually
from steersman.application import ApplicationError, application_objects
from steersman.client import MergePatch
from steersman.errors import Invalid, MethodNotAllowed
from steersman.projects import (
    SELECTION,
    ApplicationSource,
    Project,
    ProjectError,
    ProjectIdentity,
    ServiceSelection,
    SessionRunning,
    apply_objects,
    find_session,
    locked,
    read_record,
    write_record,
)
from steersman.workloads import simulated_parts
from steersman.workloads.files import InotifyWatcher
from steersman.workloads.kinds import Container, Executable, ExecutableReplicaSet, Service
from steersman.workloads.ports import LocalPorts

SHOP = """\
name: shop
services:
  db:
    command: db
  api:
    command: api --quiet
    depends_on: [db]
    ports: ["8080:8080"]
  web:
    command: web
    depends_on: [api]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    (made / "steersman.yaml").write_text(SHOP)
    return made


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}


@pytest.fixture
def source(folder, environment):
    return ApplicationSource(folder=folder, environment=environment)


def project_of(source, selection=None, reports=None):
    return Project(source, selection, report=(reports if reports is not None else []).append, parts=simulated_parts)


async def names(project, kind=ExecutableReplicaSet):
    return sorted(each.key.name for each in await project.client.list(kind))


async def edit(project, folder, text, reports):
    """Write the file, and wait until the session has taken the edit."""
    before = len(reports)
    (folder / "steersman.yaml").write_text(text)
    project.plane.parts.files.change("steersman.yaml")
    await eventually(lambda: len(reports) > before)
    return reports[-1]


# identity


def test_folders_and_names_tell_projects_apart(tmp_path):
    """Two worktrees of one repository must not share a server, ports or state."""
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    places = {
        ProjectIdentity(tmp_path / folder, name).state_folder(environment)
        for folder in ("one", "two")
        for name in ("shop", "blog")
    }
    assert len(places) == 4
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert ProjectIdentity(tmp_path / "link", "shop").state_folder(environment) in places


@pytest.mark.parametrize("home", ["", "relative"])
def test_the_state_is_in_the_home_folder_without_a_valid_setting(tmp_path, home):
    found = ProjectIdentity(tmp_path, "shop").state_folder({"XDG_STATE_HOME": home, "HOME": str(tmp_path)})
    assert found.parent == tmp_path / ".local" / "state" / "steersman"


# sessions


async def test_commands_in_the_folder_of_an_application_do_not_reach_that_of_a_parent(source, folder, environment):
    """`steersman down` there would end another application, and `run` would use its database."""
    inner = folder / "inner"
    (inner / "src").mkdir(parents=True)
    (folder / "plain").mkdir()
    async with project_of(source):
        assert find_session(inner / "src", environment) is not None
        (inner / "compose.yaml").write_text("services: {web: {image: x}}\n")
        assert find_session(inner / "src", environment) is None
        assert find_session(inner, environment, name="shop") is None
        # The folder of a file that a command names.
        assert find_session(folder / "plain", environment, is_application=True) is None
        assert find_session(folder, environment, is_application=True) is not None
        async with project_of(ApplicationSource(folder=inner, environment=environment)):
            found = find_session(inner / "src", environment)
            assert found is not None
            assert found.folder == str(inner)


@pytest.mark.parametrize("place", ["shell", ".env"])
async def test_commands_find_the_application_that_compose_file_names(source, folder, environment, place):
    """As `up` does. Without it they would not find their own session, and `down` would end that of the parent folder."""
    inner = folder / "inner"
    (inner / "deploy").mkdir(parents=True)
    (inner / "deploy" / "compose.yaml").write_text("services: {web: {image: x}}\n")
    if place == "shell":
        environment = {**environment, "COMPOSE_FILE": "deploy/compose.yaml"}
    else:
        (inner / ".env").write_text("COMPOSE_FILE=deploy/compose.yaml\n")
    async with project_of(source):
        assert find_session(inner, environment) is None
        async with project_of(ApplicationSource(folder=inner, environment=environment)) as project:
            found = find_session(inner, environment)
            assert found is not None
            assert (found.name, found.folder) == (project.identity.name, str(inner / "deploy"))


async def test_a_service_starts_after_the_end_of_one_that_an_edit_removed(source, folder):
    """A service that was renamed needs the port of its former self."""
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        processes = project.plane.parts.processes
        await eventually(lambda: len(processes.running) == 3)
        processes.running[1].ignores_signals = True
        (folder / "steersman.yaml").write_text(SHOP.replace("api:", "site:").replace("[api]", "[site]"))
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: processes.started[1].signals)
        assert len(processes.started) == 3
        processes.started[1].exit(0)
        await eventually(lambda: reports)
        assert reports == ["edit applied: Service site, site created; web changed; api, Service api deleted"]
        await eventually(lambda: len(processes.running) == 3)


async def test_a_session_is_found_while_it_runs_and_belongs_to_its_user_alone(source, folder, environment):
    (folder / "src").mkdir()
    assert find_session(folder, environment) is None
    async with project_of(source) as project:
        found = find_session(folder / "src", environment)
        assert found is not None
        assert found.is_running
        assert (found.name, found.pid, found.folder) == ("shop", os.getpid(), str(folder))
        assert os.path.isfile(found.kubeconfig)  # noqa: ASYNC240, PTH113 - a local file
        assert find_session(folder, environment, name="blog") is None
        assert stat.S_IMODE(project.state.stat().st_mode) == 0o700
        assert stat.S_IMODE((project.state / "session.json").stat().st_mode) == 0o600
    assert find_session(folder, environment) is None


@pytest.mark.parametrize("is_file_left", [True, False])
async def test_a_session_ends_if_its_record_is_removed(source, tmp_path, is_file_left):
    """No command could find it again: its services would run until the machine stops."""
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        if is_file_left:
            # Another session has taken the folder: its files stay.
            other = msgspec.structs.replace(project.record, start=project.record.start + 1)
            write_record(other)
        else:
            shutil.rmtree(project.state)
        project.plane.parts.files.change("session.json")
        async with asyncio.timeout(30):
            await project.stopping.wait()
    assert f"the session record in {project.state} was removed or replaced" in reports[-1]
    assert (project.state / "session.json").exists() == is_file_left


async def test_a_full_disk_is_reported_once(source, monkeypatch):
    """Output is lost without an error of the service: only the session can name the cause."""
    reports: list[str] = []
    monkeypatch.setattr("steersman.projects.state_guard._INTERVAL", 0.01)
    async with project_of(source, reports=reports) as project:
        monkeypatch.setattr("steersman.projects.state_guard._FULL", 1 << 62)
        await eventually(lambda: reports)
        monkeypatch.setattr("steersman.projects.state_guard._FULL", 0)
        await eventually(lambda: len(reports) > 1)
    assert reports == [
        f"the disk of {project.state} is full: log lines are lost until you free space",
        f"the disk of {project.state} has space again: new log lines are kept",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_state_folder_of_another_user_is_named_with_advice(tmp_path):
    """Such as that of root after ``sudo -u`` without ``-H``."""
    environment = {"HOME": str(tmp_path)}
    (tmp_path / ".local" / "state" / "steersman").mkdir(parents=True)
    tmp_path.chmod(0o700)
    state = ProjectIdentity(tmp_path, "shop").state_folder(environment)
    os.seteuid(65534)
    try:
        with pytest.raises(ProjectError, match=r"state folder .*\(Permission denied\): set XDG_STATE_HOME, or HOME"):
            find_session(Path("/"), environment)
        with pytest.raises(ProjectError, match="set XDG_STATE_HOME, or HOME"), locked(state):
            pass
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_home_that_another_user_owns_is_refused(tmp_path, monkeypatch):
    """That user could replace the folders below at any time, such as by links to files of this user."""
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    state = ProjectIdentity(tmp_path, "shop").state_folder(environment)
    state.parent.mkdir()
    os.chown(state.parent, 65534, 65534)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(ProjectError, match="belongs to another user, uid 65534"), locked(state):
        pass
    with pytest.raises(ProjectError, match="belongs to another user, uid 65534"):
        find_session(tmp_path, environment)
    assert list(state.parent.iterdir()) == []
    monkeypatch.setenv("SUDO_UID", "65534")
    with locked(state):
        assert find_session(tmp_path, environment) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["parent", "link to the folder", "link to the parent"])
def test_a_user_who_could_replace_the_state_home_is_refused(tmp_path, monkeypatch, what):
    """By a link, that user could choose the folder in which this one makes files and overwrites ports.json."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    target, home = tmp_path / "target", tmp_path / "home"
    (target / "steersman").mkdir(parents=True)
    (target / "steersman" / "ports.json").write_text("mine")
    if what == "parent":
        target.rename(home)
        os.chown(home, 65534, 65534)
    else:
        home.mkdir()
        link = home / "steersman" if "folder" in what else home / "state"
        link.symlink_to(target / "steersman" if "folder" in what else target)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        home = home if "folder" in what else link
    environment = {"XDG_STATE_HOME": str(home)}
    state = ProjectIdentity(tmp_path, "shop").state_folder(environment)
    with pytest.raises(ProjectError, match="another user, uid 65534"), locked(state):
        pass
    with pytest.raises(ProjectError, match="another user, uid 65534"):
        find_session(tmp_path, environment)
    assert asyncio.run(LocalPorts("shop", home / "steersman" / "ports.json").allocate("web"))
    assert (home / "steersman" / "ports.json").read_text() == "mine"
    assert [each.name for each in (home / "steersman").iterdir()] == ["ports.json"]


def test_new_parents_of_a_state_folder_are_private(tmp_path):
    """Also with a umask that lets every user write: others could replace the state folder."""
    state = tmp_path / "new" / "steersman" / "shop"
    mask = os.umask(0)
    try:
        with locked(state):
            modes = [each.stat().st_mode & 0o777 for each in (state, state.parent, state.parent.parent)]
    finally:
        os.umask(mask)
    assert modes == [0o700] * 3


@pytest.mark.parametrize("home", ["/dev/null", "/proc/self/fd"])
def test_a_home_in_which_nothing_can_be_made_is_named_with_advice(home):
    state = ProjectIdentity(Path("/"), "shop").state_folder({"HOME": home})
    assert find_session(Path("/"), {"HOME": home}) is None
    with pytest.raises(ProjectError, match=f"state folder {home}.*set XDG_STATE_HOME"), locked(state):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_without_a_home_folder_gets_advice():
    os.seteuid(54321)
    try:
        with pytest.raises(OSError, match="user 54321 has no home folder: set XDG_STATE_HOME"):
            ProjectIdentity(Path("/"), "shop").state_folder({})
    finally:
        os.seteuid(0)


async def test_a_state_folder_that_is_a_link_is_refused_untouched(source, tmp_path):
    """Another user could let it lead to files of this user, which the start would remove."""
    state = project_of(source).state
    state.parent.mkdir(parents=True)
    target = tmp_path / "target"
    (target / "logs").mkdir(parents=True)
    (target / "kubeconfig").write_text("precious")
    state.symlink_to(target)
    with pytest.raises(ProjectError, match=r"is not a folder of this user.*set XDG_STATE_HOME"):
        async with project_of(source):
            pass
    assert sorted(each.name for each in target.iterdir()) == ["kubeconfig", "logs"]


async def test_a_folder_has_one_session_for_each_name(source, folder, environment):
    async with project_of(source) as project:
        with pytest.raises(SessionRunning):
            async with project_of(source):
                pytest.fail("it began")
        assert await names(project) == ["api", "db", "web"], "the first one goes on"
        async with project_of(msgspec.structs.replace(source, name="blog")):
            with pytest.raises(ProjectError, match="blog, shop; name one with -p"):
                find_session(folder, environment)
            found = find_session(folder, environment, name="blog")
            assert found is not None
            assert found.name == "blog"


async def test_what_a_dead_session_left_is_found_and_removed_by_the_next(source, folder, environment):
    async with project_of(source) as project:
        record = msgspec.structs.replace(project.record, start=1)
        logs = project.state / "logs"
    write_record(record)
    logs.mkdir(exist_ok=True)
    (logs / "old").write_text("old")
    found = find_session(folder, environment)
    assert found is not None
    assert not found.is_running, "the pid is that of another process now"
    async with project_of(source):
        again = find_session(folder, environment)
        assert again is not None
        assert again.is_running
        assert not (logs / "old").exists()


# objects


async def test_objects_become_what_the_file_declares(source, folder):
    """An edit creates, changes and deletes exactly what it touches; everything else keeps its processes."""
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        assert await names(project) == ["api", "db", "web"]
        before = {each.key.name: each for each in await project.client.list(ExecutableReplicaSet)}
        edited = SHOP.replace("--quiet", "--loud").replace("  web:\n    command: web", "  shop:\n    command: shop")
        assert await edit(project, folder, edited, reports) == "edit applied: shop created; api changed; web deleted"
        after = {each.key.name: each for each in await project.client.list(ExecutableReplicaSet)}
        assert sorted(after) == ["api", "db", "shop"]
        assert after["db"].generation == before["db"].generation
        assert after["api"].spec.template.spec.args == ["--loud"]
        assert await edit(project, folder, f"{edited}# a remark\n", reports) == "edit applied: no service changes"


async def test_an_edit_with_mistakes_changes_nothing(source, folder):
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        said = await edit(project, folder, SHOP.replace("depends_on: [db]", "depend_on: [db]"), reports)
        assert said.startswith("the edit has errors and was not applied:")
        assert "\nsteersman.yaml:7:5: " in said, "a path relative to the folder fits on the screen"
        assert await names(project) == ["api", "db", "web"]
        said = await edit(project, folder, SHOP.replace("--quiet", "--loud"), reports)
        assert said == "edit applied: api changed", "the next edit counts again"


@pytest.mark.parametrize("mistake", ["services: {more: {}}", "services: {DB: {command: x}}"])
async def test_a_file_that_an_edit_with_mistakes_adds_is_watched(source, folder, mistake):
    """The edit that mends the new file is applied, without another edit of the first file."""
    reports: list[str] = []
    more = folder / "more" / "part.yaml"
    more.parent.mkdir()
    more.write_text(mistake)
    async with project_of(source, reports=reports) as project:
        files = project.plane.parts.files
        assert "the edit has errors" in await edit(project, folder, SHOP + "include: [more/part.yaml]\n", reports)
        before = len(reports)
        assert "more/part.yaml" in files.watched[f"project {folder}"].paths
        more.write_text("services: {more: {command: x}}")
        files.change("more/part.yaml", key=f"project {folder}")
        await eventually(lambda: len(reports) > before)
        assert reports[-1] == "edit applied: more created"
        await edit(project, folder, SHOP, reports)
        assert "more/part.yaml" not in files.watched[f"project {folder}"].paths


def watching(reports, source):
    """A project whose files are watched by the kernel."""

    @asynccontextmanager
    async def parts(*args, **options):
        async with simulated_parts(*args, **options) as made, InotifyWatcher() as watcher:
            yield msgspec.structs.replace(made, files=watcher)

    return Project(source, report=reports.append, parts=parts)


async def test_the_target_of_a_linked_file_is_followed(source, folder):
    """A link to a file of another folder, such as the .env of a repository, changes when its target does."""
    reports: list[str] = []
    target = folder.parent / "elsewhere" / "shared.env"
    target.parent.mkdir()
    target.write_text("A=1\n")
    (folder / ".env").symlink_to("../elsewhere/shared.env")
    async with watching(reports, source):
        target.write_text("A=2\n")
        await eventually(lambda: reports == ["edit applied: no service changes"])


async def test_a_file_is_followed_into_a_folder_that_is_made_again(source, folder):
    """A checkout may remove the folder of an included file, and make it again."""
    reports: list[str] = []
    part = folder / "more" / "part.yaml"
    part.parent.mkdir()
    part.write_text("services: {more: {command: x}}")
    (folder / "steersman.yaml").write_text(SHOP + "include: [more/part.yaml]\n")
    async with watching(reports, source) as project:
        shutil.rmtree(part.parent)
        await eventually(lambda: reports and "cannot read" in reports[-1])
        part.parent.mkdir()
        part.write_text("services: {more: {command: x, scale: 2}}")
        await eventually(lambda: project.application.services["more"].scale == 2)
        part.write_text("services: {more: {command: x, scale: 3}}")
        await eventually(lambda: project.application.services["more"].scale == 3)


async def test_a_session_applies_the_scales_of_a_second_up(source):
    """Several processes cannot share the port at which one listens itself."""
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        body = msgspec.json.encode(ServiceSelection(scales={"api": 2}))
        await project.client.request("PATCH", SELECTION, body=body)
        await eventually(lambda: reports)
        assert reports[0] == "scaled api to 2"
        found = await project.client.get(ExecutableReplicaSet, "api")
        assert found.spec.replicas == 2
        ports = {each.name: each.value for each in found.spec.template.spec.env or ()}
        assert ports["PORT"].startswith("{{portForServing"), ports


async def test_commands_at_the_same_moment_lose_no_change(source):
    """Only the session writes its record."""
    scales = {"db": 2, "api": 3, "web": 4}
    async with project_of(source) as project:
        async with asyncio.TaskGroup() as tasks:
            for name, number in scales.items():
                added = ServiceSelection(profiles=(name,), scales={name: number})
                tasks.create_task(project.client.request("PATCH", SELECTION, body=msgspec.json.encode(added)))
        record = read_record(project.state)
        assert (set(record.profiles), record.scales) == (set(scales), scales)


@pytest.mark.parametrize("body", [b"[]", b'{"scales": {"web": "two"}}', b"{"])
async def test_a_selection_that_cannot_be_read_is_rejected(source, body):
    async with project_of(source) as project:
        with pytest.raises(Invalid):
            await project.client.request("PATCH", SELECTION, body=body)
        with pytest.raises(MethodNotAllowed, match=f"use PATCH for {SELECTION}"):
            await project.client.request("POST", SELECTION, body=b"{}")
        assert read_record(project.state).scales == {}


async def test_a_file_that_is_gone_for_a_moment_changes_nothing(source, folder):
    """An editor or a checkout removes it before it writes it: a file beside it must not take its place."""
    (folder / "Procfile").write_text("other: sleep 1\n")
    reports: list[str] = []
    async with project_of(msgspec.structs.replace(source, name="shop"), reports=reports) as project:
        (folder / "steersman.yaml").unlink()
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: reports)
        assert reports == [f"{folder / 'steersman.yaml'} is gone, so nothing changes until it is back"]
        assert await names(project) == ["api", "db", "web"]
        said = await edit(project, folder, SHOP.replace("--quiet", "--loud"), reports)
        assert said == "edit applied: api changed"


async def test_a_new_file_that_comes_before_the_running_one_is_named(source, folder):
    """Its edits would have no effect, and the running file is not gone."""
    (folder / "steersman.yaml").rename(folder / "steersman.yml")
    reports: list[str] = []
    async with project_of(msgspec.structs.replace(source, name="shop"), reports=reports) as project:
        (folder / "steersman.yaml").write_text("services: {other: {command: sleep 1}}\n")
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: reports)
        said = (
            f"{folder / 'steersman.yaml'} now comes before steersman.yml, which this session runs, so nothing changes: "
        )
        assert reports == [f"{said}remove it, or run steersman down and up to use it"]
        assert await names(project) == ["api", "db", "web"]


async def test_an_edit_can_rename_a_service_that_a_command_scaled(source, folder):
    reports: list[str] = []
    async with project_of(source, ServiceSelection(scales={"web": 2}), reports=reports) as project:
        said = await edit(project, folder, SHOP.replace("  web:\n", "  site:\n"), reports)
        assert said == "edit applied: site created; web deleted"


async def test_an_edited_scale_replaces_the_number_of_a_command(source, folder):
    """An edit of another key keeps the number."""
    reports: list[str] = []

    async def replicas() -> int:
        return (await project.client.get(ExecutableReplicaSet, "web")).spec.replicas

    async with project_of(source, ServiceSelection(scales={"web": 2}), reports=reports) as project:
        await edit(project, folder, SHOP.replace("--quiet", "--loud"), reports)
        assert await replicas() == 2
        await edit(project, folder, f"{SHOP}    scale: 3\n", reports)
        await eventually(lambda: "edit applied" in reports[-1])
        assert "web: scale 3 from the file replaces 2 from an earlier command" in reports
        assert await replicas() == 3
        found = find_session(folder, source.environment)
        assert found is not None
        assert found.scales == {"web": 3}


def test_all_scales_the_processes_without_a_number_of_their_own(source, folder):
    """Not a process that must complete: two migrations at once would disturb each other."""
    (folder / "steersman.yaml").unlink()
    (folder / "Procfile").write_text("release: migrate\nweb: serve\nworker: work\n")
    application = source.load(ServiceSelection(scales={"all": 3, "web": 2}))
    assert {name: each.scale for name, each in application.services.items()} == {"release": 1, "web": 2, "worker": 3}
    objects = {
        each.key.name: each for each in application_objects(application, project="shop") if each.kind != "Service"
    }
    for name in ("web", "worker"):
        variables = {each.name: each.value for each in objects[name].spec.template.spec.env}
        assert variables["PORT"] == f'{{{{portForServing "{name}"}}}}', "several processes cannot listen at one port"


async def test_an_object_of_a_kind_that_is_not_served_is_an_error_with_its_place(source, folder):
    text = f"{SHOP}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\n"
    line = text[: text.index("apiVersion")].count("\n") + 1
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        said = await edit(project, folder, text, reports)
        assert (
            f"steersman.yaml:{line}:1: ConfigMap settings: steersman up does not serve the kind ConfigMap (v1)" in said
        )
    with pytest.raises(ApplicationError, match="does not serve the kind ConfigMap"):
        async with project_of(source):
            pass


BUILT = """\
name: shop
services:
  api:
    build: api
    develop:
      watch:
        - {action: %s, path: api, target: /srv}
  db: {image: "app:1"}
"""


@pytest.mark.parametrize("action", ["rebuild", "sync+restart"])
async def test_a_watched_file_of_a_container_is_followed(source, folder, action):
    """A rebuild replaces the container; a sync copies the file. Other containers keep running."""
    (folder / "steersman.yaml").write_text(BUILT % action)
    (folder / "api").mkdir()
    (folder / "api/app.py").write_text("new")
    reports: list[str] = []
    async with project_of(source, reports=reports) as project:
        runtime = project.plane.parts.containers

        async def running() -> dict[str, tuple[str, str | None]]:
            """The uid and the container of each Container, once both run."""
            states: dict = {}
            try:
                async with asyncio.timeout(30):
                    while [each.state for each in states.values()] != ["Running", "Running"]:
                        await asyncio.sleep(0.01)
                        found = await project.client.list(Container)
                        states = {each.key.name: each.status for each in found if each.status is not None}
            except TimeoutError:
                raise AssertionError(states) from None
            return {each.key.name: (each.uid, states[each.key.name].container_id) for each in found}

        before = await running()
        project.plane.parts.files.change(str(folder / "api/app.py"))
        if action == "rebuild":
            await eventually(lambda: len([call for call in runtime.calls if call[0] == "build"]) == 2)
        else:
            await eventually(lambda: ("copy", before["api"][1]) in runtime.calls)
            await eventually(lambda: len([call for call in runtime.calls if call[0] == "start"]) == 3)
        after = await running()
        assert (after["api"][0] != before["api"][0]) is (action == "rebuild")
        assert after["db"] == before["db"]
        assert f"api: {action}, because {folder / 'api/app.py'} changed" in reports


MARKED = ExecutableReplicaSet.gvk().api_version
LONG = "x" * 300_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"services:\n  web: {{command: web, labels: {{note: {LONG}}}}}", "2:3: service web: "),
        (
            (
                f"services:\n  web: {{command: web}}\n---\n{{apiVersion: {MARKED}, kind: ExecutableReplicaSet,"
                " metadata: {name: own, labels: {a b: c}}, spec: {template: {spec: {executablePath: own}}}}"
            ),
            "4:1: ",
        ),
    ],
)
async def test_an_object_that_the_server_rejects_has_its_place_in_the_file(source, folder, text, expected):
    file = folder / "steersman.yaml"
    file.write_text(f"name: shop\n{text}\n")
    with pytest.raises(ApplicationError, match="ExecutableReplicaSet") as failed:
        async with project_of(source):
            pass
    line, column, rest = expected.split(":", 2)
    assert str(failed.value).startswith(f"{file}:{int(line) + 1}:{column}:{rest}")


@pytest.mark.parametrize(("grace", "seconds"), [("", "0.1"), (", stop_grace_period: 200ms", "0.3")])
async def test_an_object_that_does_not_end_is_named(source, folder, monkeypatch, grace, seconds):
    """The wait includes the time that the service declares for its stop."""
    monkeypatch.setattr("steersman.projects.changes._GONE_WITHIN", 0.1)
    (folder / "steersman.yaml").write_text(f"name: shop\nservices: {{web: {{command: web{grace}}}}}\n")
    async with project_of(source) as project:
        found = await project.client.get(ExecutableReplicaSet, "web")
        patch = MergePatch({"metadata": {"finalizers": ["example.com/held"]}})
        await project.client.patch(ExecutableReplicaSet, found.key, patch)
        with pytest.raises(TimeoutError, match=f"ExecutableReplicaSet web is still stopping after {seconds} s"):
            await apply_objects(project.client, [], project="shop")
        patch = MergePatch({"metadata": {"finalizers": None}})
        await project.client.patch(ExecutableReplicaSet, found.key, patch)


async def test_an_object_that_cannot_change_is_replaced(source):
    async with project_of(source) as project:

        def executable(path):
            labels = {"steersman.dev/project": "shop"}
            spec = {"executablePath": path}
            tree = {"apiVersion": Executable.gvk().api_version, "kind": "Executable", "spec": spec}
            return [msgspec.convert({**tree, "metadata": {"name": "tool", "labels": labels}}, Executable)]

        first = await apply_objects(project.client, executable("/bin/old"), project="shop", prune=False)
        before = await project.client.get(Executable, "tool")
        second = await apply_objects(project.client, executable("/bin/new"), project="shop", prune=False)
        after = await project.client.get(Executable, "tool")
        assert (first.created, second.replaced) == (["Executable tool"], ["Executable tool"])
        assert after.uid != before.uid
        assert after.spec.executable_path == "/bin/new"


async def test_named_services_come_with_their_dependencies(source):
    async with project_of(source, ServiceSelection(names=("api",), scales={"api": 2})) as project:
        assert await names(project) == ["api", "db"]
        assert await names(project, Service) == ["api"]
        assert (await project.client.get(ExecutableReplicaSet, "api")).spec.replicas == 2


def test_a_session_without_an_enabled_service_does_not_start(source, folder):
    """It would wait for ever, also in CI."""
    (folder / "steersman.yaml").write_text("services: {a: {command: x, profiles: [p, q]}}\n")
    with pytest.raises(ApplicationError, match="no service is enabled: enable one of the profiles p, q with --profile"):
        project_of(source)
    project_of(source, ServiceSelection(profiles=("q",)))


def test_a_scale_names_a_service_that_exists(source):
    with pytest.raises(ApplicationError, match="no service wep; the services are: db, api, web"):
        source.load(ServiceSelection(scales={"wep": 2}))


def test_selections_join():
    one = ServiceSelection(names=("web",), profiles=("test",), scales={"web": 2})
    two = ServiceSelection(names=("api", "web"), scales={"web": 3})
    assert one.joined(two) == ServiceSelection(names=("web", "api"), profiles=("test",), scales={"web": 3})
    every = one.joined(ServiceSelection())
    assert every.names == (), "without a name, all services are meant"
    assert every == ServiceSelection().joined(one)
    assert every.beside == ("web",)


# the end


async def test_dependents_stop_first(source):
    """A database that stops before its clients makes them print errors, or lose work."""
    ended: list[str] = []
    async with project_of(source) as project:
        processes = project.plane.parts.processes
        await eventually(lambda: len(processes.running) == 3)

        async def watch():
            while len(ended) < 3:
                over = [Path(each.launch.program).name for each in processes.started if each.is_over]
                ended.extend(name for name in over if name not in ended)
                await asyncio.sleep(0)

        await asyncio.gather(project.stop(), watch())
        assert ended == ["web", "api", "db"]


async def test_an_edit_while_the_session_starts_is_applied(source, folder):
    """The files are read before the session can watch them."""
    reports: list[str] = []
    project = project_of(source, reports=reports)
    (folder / "steersman.yaml").write_text(SHOP.replace("command: web", "command: site"))
    async with project:
        await eventually(lambda: "edit applied: web changed" in reports)
    async with project_of(source, reports=reports):
        assert len(reports) == 1, "no edit, no report"


async def test_an_application_that_was_read_before_starts_as_it_was_read(source, folder):
    """A command shows the services before it starts them: an edit between must not start others."""
    reports: list[str] = []
    whole = source.read()
    assert source.renewed(whole) is whole
    (folder / "steersman.yaml").write_text(SHOP.replace("  web:", "  site:"))
    assert "site" in source.renewed(whole).services
    project = Project(source, report=reports.append, parts=simulated_parts, whole=whole)
    assert [*project.application.services] == ["db", "api", "web"]
    async with project:
        await eventually(lambda: reports)
        assert await names(project) == ["api", "db", "site"]
    assert reports == ["edit applied: site created; web deleted"]
