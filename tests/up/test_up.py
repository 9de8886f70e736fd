"""``steersman up`` and its companions with real processes: order, exit codes, edits, a second up, detach, kill -9."""

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from samples.eventually import eventually
from steersman.cli.up.background import LOG, background_command
from steersman.projects import ProjectIdentity

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

#: Seconds for one command on a busy machine.
WITHIN = 60
LOOP = "while :; do sleep 0.1; done"


class Place:
    """A folder with an application, and the commands that a user types in it."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True)
        dropped = {"KUBECONFIG", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME"}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        self.environment = {**kept, "XDG_STATE_HOME": str(state), "PYTHONPATH": os.pathsep.join(sys.path)}

    def write(self, text: str, name: str = "steersman.yaml") -> None:
        (self.folder / name).write_text(text)

    async def begin(self, *words: str) -> asyncio.subprocess.Process:
        """Start a command, with one stream for both outputs."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "steersman", *words),
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; returns what it printed."""
        async with asyncio.timeout(WITHIN):
            process = await self.begin(*words)
            output, _ = await process.communicate()
        text = output.decode()
        assert process.returncode == code, f"steersman {' '.join(words)}: exit code {process.returncode}\n{text}"
        return text

    async def rows(self) -> dict[str, dict]:
        return {row["name"]: row for row in json.loads(await self.run("ps", "--json"))}

    @asynccontextmanager
    async def up(self, *words: str):
        """A foreground session, killed at the end of the block."""
        process = await self.begin("up", *words)
        try:
            yield Session(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Session:
    """A running ``steersman up``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.text = ""

    async def until(self, words: str, *, within: float = WITHIN) -> str:
        """Read until the output has these words; returns all output."""
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(within):
                while words not in self.text:
                    line = await self.process.stdout.readline()
                    assert line, f"it ended with {await self.process.wait()} before {words!r}:\n{self.text}"
                    self.text += line.decode()
        except TimeoutError:
            pytest.fail(f"it did not print {words!r}:\n{self.text}")
        return self.text

    async def end(self, number: signal.Signals | None = None) -> int:
        """Send a signal, read the rest, and return the exit code."""
        assert self.process.stdout is not None
        if number is not None:
            self.process.send_signal(number)
        async with asyncio.timeout(WITHIN):
            self.text += (await self.process.stdout.read()).decode()
            return await self.process.wait()


@pytest.fixture
async def place(tmp_path: Path):
    place = Place(tmp_path / "shop", tmp_path / "state")
    yield place
    if marked(place):
        # the test failed before it ended a detached session
        await (await place.begin("down")).communicate()


def marked(place: Place) -> list[int]:
    """The living processes that were started in a folder."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if (each / "cwd").readlink() == place.folder and b"sh" in (each / "comm").read_bytes():
                    found.append(int(each.name))
            except OSError:
                continue
    return found


def sessions(place: Place) -> list[int]:
    """The living processes of detached sessions of a folder."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if (each / "cwd").readlink() == place.folder and b"--background" in (each / "cmdline").read_bytes():
                    found.append(int(each.name))
            except OSError:
                continue
    return found


async def test_services_start_in_order_and_stop_in_reverse(place: Place):
    """The whole life of a session: start by dependencies, an edit, Ctrl-C, and nothing left."""
    place.write(f"""\
services:
  web:
    command: echo "web sees $$DB_SERVICE_PORT"; trap 'echo web ends; exit 0' TERM; {LOOP}
    shell: true
    depends_on: {{migrate: {{condition: service_completed_successfully}}, db: {{condition: service_started}}}}
  migrate:
    command: echo migrated >&2
    shell: true
    depends_on: [db]
  db:
    command: echo "db begins"; trap 'echo db ends; exit 0' TERM; {LOOP}
    shell: true
    ports: ["18432:18432"]
""")
    async with place.up() as session:
        text = await session.until("web sees 18432")
        assert "shop: 3 services from steersman.yaml" in text
        assert "web      process     after migrate to complete and db" in text
        lines = text.splitlines()
        assert [line for line in lines if line.startswith(("db-1", "migrate-1", "web-1"))] == [
            "db-1      | db begins",
            "migrate-1 ! migrated",
            "web-1     | web sees 18432",
        ]
        place.write((place.folder / "steersman.yaml").read_text().replace("web sees", "web now sees"))
        await session.until("edit applied: web changed")
        await session.until("web-1     | web now sees 18432")
        assert session.text.count("db begins") == 1
        assert await session.end(signal.SIGINT) == 130
        assert session.text.index("web ends") < session.text.index("db ends")
    assert "no application is running here" in await place.run("ps")
    assert marked(place) == []


async def test_an_edit_after_the_services_are_shown_is_an_edit(place: Place):
    """Otherwise up would start services that it has not shown."""
    shop = f"services:\n  web: {{command: '{LOOP}', shell: true}}\n"
    place.write(shop)
    async with place.up() as session:
        await session.until("shop: 1 service from steersman.yaml")
        place.write(f"{shop}  worker: {{command: '{LOOP}', shell: true}}\n")
        await session.until("edit applied: worker created")
        assert await session.end(signal.SIGINT) == 130


async def test_a_detached_session_starts_what_the_command_has_read(place: Place):
    """Otherwise the command would wait for services that an edit has removed meanwhile."""
    shop = f"services:\n  web: {{command: '{LOOP}', shell: true}}\n"
    place.write(shop)
    identity = ProjectIdentity(place.folder.resolve(), "shop")
    log = identity.state_folder(place.environment) / LOG
    try:
        up = Session(await place.begin("up", "--detach"))
        await up.until("shop: 1 service from steersman.yaml")
        place.write(f"{shop}  worker: {{command: '{LOOP}', shell: true}}\n")
        assert await up.end() == 0
        await eventually(lambda: "edit applied: worker created" in log.read_text(), within=WITHIN)
    finally:
        await place.run("down")


async def test_mistakes_are_named_with_their_place(place: Place):
    place.write("services:\n  web:\n    comand: sleep 9\n")
    text = await place.run("up", code=1)
    assert "steersman.yaml:3:5" in text
    assert "command" in text


async def test_without_a_container_runtime_the_processes_run(place: Place, tmp_path: Path):
    place.write('services: {web: {command: sleep 1000}, page: {image: "busybox:1"}}')
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "sleep", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "")
    place.environment["PATH"] = str(programs)
    assert "page cannot start, because podman is not installed" in await place.run("up", "--detach", code=1)
    async with place.up() as session:
        await session.until("=> web runs")
        assert "warning: page cannot start, because podman is not installed: install it" in session.text
        assert await session.end(signal.SIGINT) == 130


async def test_a_service_decides_the_exit_code(place: Place):
    place.write(f"""\
services:
  setup: {{command: "true", shell: true}}
  db: {{command: "{LOOP}", shell: true}}
  test:
    command: echo testing; exit 3
    shell: true
    depends_on: {{setup: {{condition: service_completed_successfully}}, db: {{condition: service_started}}}}
""")
    text = await place.run("up", "--abort-on-exit", code=3)
    assert "test-1  | testing" in text
    assert "=> test failed with exit code 3" in text
    text = await place.run("up", "--exit-code-from", "nothing", code=1)
    assert "no service nothing; the services are: setup, db, test" in text


async def test_the_run_ends_when_all_services_have_ended(place: Place):
    place.write('services:\n  one: {command: "exit 5", shell: true}\n  two: {command: "exit 0", shell: true}\n')
    assert "all services have ended" in await place.run("up", code=0)


async def test_detach_logs_restart_a_second_up_and_down(place: Place):
    place.write(f"""\
services:
  web: {{command: "echo web begins; {LOOP}", shell: true}}
  worker: {{command: "echo worker begins; {LOOP}", shell: true, profiles: [extra]}}
""")
    # In Latin-1, which is no UTF-8 text: a status can contain it only with a replacement character.
    place.environment["CAFE"] = "caf\udce9"
    try:
        assert "steersman down stops the application" in await place.run("up", "--detach")
        before = await place.rows()
        assert set(before) == {"web"}
        assert before["web"]["state"] == "running"
        assert await place.run("logs") == "web-1 | web begins\n"
        full = await asyncio.create_subprocess_shell(
            f"exec {sys.executable} -m steersman logs > /dev/full",
            cwd=place.folder,
            env=place.environment,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await full.communicate()
        assert (full.returncode, errors) == (1, b"steersman: cannot write the output: No space left on device\n")
        assert "web: running" in await place.run("restart", "web")
        after = await place.rows()
        assert after["web"]["pid"] != before["web"]["pid"]
        script = "pwd; printf %s $CAFE | od -An -tx1; exit 4"
        assert await place.run("exec", "web", "--", "sh", "-c", script, code=4) == f"{place.folder}\n 63 61 66 e9\n"
        async with place.up("--profile", "extra", "--plain") as second:
            await second.until("worker-1 | worker begins")
            assert "is already running" in second.text
            assert await second.end(signal.SIGINT) == 130
            assert "keeps running" in second.text
        assert set(await place.rows()) == {"web", "worker"}
    finally:
        assert "shop: stopped" in await place.run("down")
    assert marked(place) == []


async def test_two_commands_that_start_it_at_once_leave_one_session(place: Place):
    """The process of the second one must not stay and follow the first."""
    place.write(f"services:\n  web: {{command: '{LOOP}', shell: true}}\n")
    try:
        await asyncio.gather(*(place.run("up", "--detach", "--", "web") for _ in range(2)))
        await eventually(lambda: len(sessions(place)) == 1, within=WITHIN)
        assert set(await place.rows()) == {"web"}
    finally:
        await place.run("down")


async def test_up_during_down_starts_the_application_again(place: Place):
    stubborn = f"test -e end && {LOOP}; trap : TERM; until test -e end; do sleep 0.1; done"
    place.write(f"services:\n  web: {{command: '{stubborn}', shell: true, stop_grace_period: {WITHIN}s}}\n")
    try:
        await place.run("up", "--detach")
        before = sessions(place)
        down = Session(await place.begin("down"))
        await down.until("still stopping: web")
        again = Session(await place.begin("up", "--detach"))
        await again.until("=> shop is stopping: it starts again after that")
        (place.folder / "end").touch()
        assert await down.end() == 0
        assert await again.end() == 0
        assert sessions(place) not in ([], before)
    finally:
        (place.folder / "end").touch()
        await place.run("down")


async def test_a_service_without_a_session_is_named(place: Place):
    place.write(f"services:\n  web: {{command: '{LOOP}', shell: true}}\n")
    assert "is not running; start it with: steersman up" in await place.run("logs", "web", code=1)
    text = await place.run("run", "db", code=1)
    assert text == "steersman: no service and no module db here; the services are: web (a manager: MODULE:NAME)\n"
    assert "no service db; the services are: web" in await place.run("up", "db", code=1)


def test_modules_of_the_application_and_names_do_not_break_a_detached_session():
    command = background_command(["-p", "up", "up", "--detach", "--", "web"])
    assert command[1:] == ["-P", "-m", "steersman", "--background", "-p", "up", "up", "--detach", "--", "web"]


async def test_detach_shows_the_last_lines_of_what_failed(place: Place):
    # it is never ready, so no view takes it for one that runs
    place.write(
        "services:\n  web: {command: 'echo no database >&2; exit 7', shell: true, healthcheck: {test: [CMD, 'false']}}\n"
    )
    text = await place.run("up", "--detach", code=1)
    assert "web-1 ! no database" in text
    assert "web failed with exit code 7" in text
    await place.run("down")


async def test_kill_9_leaves_nothing_and_down_cleans_up(place: Place):
    """The next start must not meet ports, processes or records of a session that was killed."""
    place.write(f"services:\n  web: {{command: 'echo begins; {LOOP}', shell: true}}\n")
    async with place.up() as session:
        await session.until("web-1 | begins")
        session.process.kill()
        await session.process.wait()
    await eventually(lambda: not marked(place), within=WITHIN)
    assert "its session was killed" in await place.run("ps")
    assert "cleaned up after it" in await place.run("down")
    assert "no application is running here" in await place.run("down")


async def test_run_starts_what_a_service_needs_and_nothing_else(place: Place):
    place.write(f"""\
services:
  db: {{command: "touch db; {LOOP}", shell: true}}
  task:
    command: echo the task
    shell: true
    environment: {{GREETING: hello}}
    depends_on: [db]
  web: {{command: "touch web", shell: true}}
""")
    text = await place.run(
        "run", "task", "--", "sh", "-c", "until [ -e db ]; do sleep 0.05; done; echo $GREETING; exit 6", code=6
    )
    assert text.endswith("hello\n")
    assert not (place.folder / "web").exists()
    assert marked(place) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
async def test_run_has_the_user_of_the_service(place: Place):
    place.write("services:\n  task: {command: 'true', user: nobody, working_dir: /}\n")
    assert (await place.run("run", "task", "--", "sh", "-c", "id -un; pwd")).endswith("nobody\n/\n")
