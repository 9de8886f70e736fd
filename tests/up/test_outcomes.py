"""What rows mean for ``up``: when it has started, when it ends, with which exit code, and what it prints."""

from pathlib import Path

import pytest

from steersman.application import ServiceDefinition
from steersman.application.model import Place, Restart, WatchRule
from steersman.cli import main
from steersman.cli.up.background import late_problems
from steersman.cli.up.outcomes import (
    AbortRules,
    blocking,
    change_words,
    ending,
    failures,
    has_started,
    hopeless,
    is_decided,
    listed,
)
from steersman.ui import Row


def row(name, state="running", **facts):
    facts.setdefault("ready", int(state == "running"))
    return Row(name=name, kind="process", state=state, **facts)


def services(**restarts):
    """Services by name, with their restart policy."""
    return {
        name: ServiceDefinition(
            name=name, place=Place(Path("x")), restart=Restart(policy=policy) if policy else Restart()
        )
        for name, policy in restarts.items()
    }


NO_RULES = AbortRules()
FAILED = row("web", "failed", exit_code=3)
DONE = row("migrate", "finished", exit_code=0)


@pytest.mark.parametrize(
    ("shown", "started"),
    [
        (row("web"), True),
        (row("web", health="healthy"), True),
        (row("web", health="unknown", ready=0), False),
        (row("web", replicas=2), False),
        (row("web", "starting"), False),
        (row("web", "waiting"), False),
        (DONE, True),
    ],
)
def test_a_service_has_started_when_it_runs_and_is_healthy_or_has_done_its_work(shown, started):
    assert has_started(shown) is started


def test_a_finished_migration_does_not_end_the_run():
    """In CI, Compose ends a run when the migration ends; what waits for its completion makes it expected."""
    web = row("web", depends_on=(("migrate", "completed"),))
    for rules in (NO_RULES, AbortRules(on_exit=True), AbortRules(on_failure=True)):
        assert ending([DONE, web], services(migrate=None, web=None), rules) is None


def test_the_first_service_that_ends_decides_the_exit_code():
    rows = [row("db"), FAILED]
    known = services(db=None, web=None)
    for rules in (AbortRules(on_exit=True), AbortRules(on_failure=True)):
        found = ending(rows, known, rules)
        assert found is not None
        assert (found.code, found.why) == (3, "web has ended; stopping all services")
    assert ending(rows, known, NO_RULES) is None
    assert ending([row("db"), DONE], services(db=None, migrate=None), AbortRules(on_failure=True)) is None


def test_a_service_that_restarts_has_not_ended():
    for policy in ("always", "on-failure", "unless-stopped"):
        assert ending([FAILED], services(web=policy), AbortRules(on_exit=True)) is None
    assert ending([row("web", "restarting in 4 s", exit_code=3)], services(web="always"), NO_RULES) is None


def test_all_services_that_have_ended_end_the_run():
    found = ending([FAILED, DONE], services(web=None, migrate=None), NO_RULES)
    assert found is not None
    assert found.code == 0, "as Compose does; the options that abort return the code of a service"


def test_a_service_that_is_scaled_to_zero_keeps_no_run_from_ending():
    """In CI the command would never return."""
    known = services(web=None, migrate=None, worker=None)
    none = row("worker", "stopped", ready=0, replicas=0)
    found = ending([FAILED, DONE, none], known, NO_RULES)
    assert found is not None
    assert found.why == "all services have ended"
    assert ending([row("web"), none], known, NO_RULES) is None
    assert ending([none], known, NO_RULES) is None


def test_a_watched_service_that_has_ended_can_start_again():
    known = services(web=None)
    known["web"] = ServiceDefinition(name="web", place=Place(Path("x")), watch=(WatchRule(paths=("*.py",)),))
    assert ending([FAILED], known, NO_RULES) is None


def test_waiting_for_what_cannot_happen_ends_the_run_with_a_sentence():
    migrate = row("migrate", "failed", exit_code=1)
    api = row("api", "waiting", depends_on=(("migrate", "completed"),))
    web = row("web", "waiting", depends_on=(("api", "healthy"),))
    known = services(migrate=None, api=None, web=None)
    assert hopeless([migrate, api, web], known) == {"api": "migrate", "web": "api"}
    found = ending([migrate, api, web], known, NO_RULES)
    assert found is not None
    assert found.code == 1
    assert found.problems == (
        "migrate failed with exit code 1",
        "api cannot start: migrate failed with exit code 1, and it waits for migrate",
        "web cannot start: api cannot start, and it waits for api",
    )


BUSY = row("db", "failed", retried=True, message="port 80 is in use by nginx", pid=7)
BLOCKED = row("web", "failed", retried=True, message="db has failed, and it waits for db")
UNHEALTHY = row("db", health="unhealthy", message="404: URL (health check)", ready=0)


def test_a_port_of_another_program_fails_a_start_and_is_retried_in_the_foreground():
    known = services(db="always", web=None)
    assert failures([BUSY, BLOCKED], known) == [
        "db failed: port 80 is in use by nginx",
        "web failed: db has failed, and it waits for db",
    ]
    assert ending([BUSY, BLOCKED], known, NO_RULES) is None, "they start once the port is free"
    for rules in (AbortRules(on_exit=True), AbortRules(on_failure=True), AbortRules(on_exit=True, code_from="web")):
        found = ending([BUSY, BLOCKED], known, rules)
        assert found is not None
        assert (found.code, found.is_final) == (1, True)
        assert found.problems[0] == "db failed: port 80 is in use by nginx"


def test_an_unhealthy_dependency_fails_a_start_as_in_compose():
    known = services(db=None, web=None)
    web = row("web", "failed", retried=True, message="db is unhealthy, and it waits for db")
    assert failures([UNHEALTHY], known) == ["db is unhealthy: 404: URL (health check)"]
    assert ending([UNHEALTHY, web], known, NO_RULES) is None
    found = ending([UNHEALTHY, web], known, AbortRules(on_failure=True))
    assert found is not None
    assert found.code == 1
    assert ending([UNHEALTHY], known, AbortRules(on_failure=True)) is None, "no service waits for it, and it runs"


@pytest.mark.parametrize(
    ("needed", "condition", "words"),
    [
        (row("db"), "started", ""),
        (row("db", "waiting"), "healthy", ""),
        (row("db", health="unknown"), "healthy", ""),
        (UNHEALTHY, "started", ""),
        (UNHEALTHY, "healthy", "db is unhealthy: 404: URL (health check)"),
        (BUSY, "started", "db failed: port 80 is in use by nginx"),
        (row("db", "failed", exit_code=3), "completed", "db failed with exit code 3, and it waits for db"),
    ],
)
def test_a_run_says_why_its_dependency_cannot_be_met(needed, condition, words):
    assert blocking([("db", condition)], [needed], services(db=None)) == words


def test_a_run_names_only_the_failures_of_what_it_needs():
    """A running session may have other services that have failed."""
    other = row("job", "failed", exit_code=3)
    api = row(
        "api", "failed", retried=True, depends_on=(("db", "healthy"),), message="db is unhealthy, and it waits for db"
    )
    known = services(db=None, api=None, job=None)
    assert blocking([("api", "started")], [UNHEALTHY, api, other], known) == (
        "db is unhealthy: 404: URL (health check); api failed: db is unhealthy, and it waits for db"
    )


def test_a_run_does_not_wait_for_a_service_that_a_command_has_stopped():
    """Only a command starts it again. A service with scale 0 is no reason: nothing of it is missing."""
    needs, declared = (("db", "healthy"),), services(db="", web="")
    reason = blocking(needs, [row("db", "stopped")], declared)
    assert reason == "db is stopped, and it waits for db: start it with steersman start db"
    assert blocking(needs, [row("db", "stopped", replicas=0)], declared) == ""


def test_every_failure_is_named_and_a_start_is_decided_when_each_service_has_started_or_failed():
    """One mistake often fails several services; a user who learns of one only mends one."""
    known = services(db=None, web=None, worker=None)
    rows = [row("db", "failed", message="no such file"), FAILED, row("worker", "starting")]
    assert failures(rows, known) == ["db failed to start: no such file", "web failed with exit code 3"]
    assert not is_decided(rows, known)
    assert is_decided([*rows[:2], row("worker")], known), "a running service without a check has started"
    assert is_decided([FAILED, row("worker", "waiting", depends_on=(("web", "completed"),))], known)
    assert listed(["a failed"]) == "a failed"
    assert listed(["a failed", "b failed"]) == "2 services have failed:\n  a failed\n  b failed"


def test_a_service_that_keeps_restarting_fails_a_start():
    restarting = row("web", "restarting in 8 s", restarts=3, exit_code=2, message="Ended with exit code 2.")
    assert failures([restarting], services(web="always")) == ["web keeps restarting: Ended with exit code 2."]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (None, row("web", addresses=("localhost:80",)), "runs at localhost:80"),
        (None, row("web", "waiting", waiting_for="db to start"), ""),
        (row("web"), row("web"), ""),
        (row("web", health="unknown"), row("web", health="healthy"), "is healthy"),
        (row("web", health="unknown"), row("web", health="unhealthy"), ""),
        (row("web", health="healthy"), row("web", health="unhealthy"), "is unhealthy"),
        (
            row("web", health="unknown"),
            row("web", health="unhealthy", message="404: URL (health check)"),
            "is unhealthy: 404: URL (health check)",
        ),
        (row("web", health="unknown"), row("web", health="unknown", message="404: URL (health check)"), ""),
        (
            row("web"),
            row("web", "failed", exit_code=1, message="port 80 is in use by nginx"),
            "failed with exit code 1: port 80 is in use by nginx",
        ),
        (None, row("web", message="port 80 is in use by nginx"), "runs: port 80 is in use by nginx"),
        (row("web"), row("web", message="port 80 is in use by nginx"), "has a problem: port 80 is in use by nginx"),
        (row("web"), row("web", "unknown", message="The shim was killed."), "is unknown: The shim was killed."),
        (row("web"), FAILED, "failed with exit code 3"),
        (row("web"), row("web", "restarting in 2 s", exit_code=3), "ended with exit code 3; restarting in 2 s"),
        (
            row("web"),
            row("web", "failed", message="There is no program weg."),
            "failed to start: There is no program weg.",
        ),
    ],
)
def test_changes_in_words(before, after, words):
    assert change_words(before, after) == words


def test_a_command_names_the_extra_that_it_needs(monkeypatch, capsys):
    """The base package has no certificates: ``up`` needs ``steersman[server]``."""

    def run_up(_: object) -> int:
        raise ModuleNotFoundError("certificates need cryptography: pip install 'steersman[server]'")

    monkeypatch.setattr("steersman.cli.parsers.commands.run_up", run_up)
    assert main(["up"]) == 1
    assert capsys.readouterr().err == "steersman: certificates need cryptography: pip install 'steersman[server]'\n"


def test_a_timeout_names_the_failures_too():
    """The time may end while the command still waits for more failures."""
    rows = [FAILED, row("worker", "starting"), row("db"), row("other", "starting")]
    assert late_problems(rows, services(web="", worker="", db="", cache=""), within=5) == [
        "web failed with exit code 3",
        "worker did not start within 5 s (starting)",
        "cache did not start within 5 s",
    ]
