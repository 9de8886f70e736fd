"""What a process starts with: templates, environment, lifecycle key, dependencies. All pure, all by table."""

from __future__ import annotations

import pytest

from steersman.objects import Condition, ObjectMeta
from steersman.workloads.containers import ContainerRuntimeError
from steersman.workloads.containers.arguments import environment, full_image_name
from steersman.workloads.dependencies import cycle, unmet, waiting_for
from steersman.workloads.environment import (
    MASK,
    effective_environment,
    masked,
    parse_env_file,
    shown_environment,
)
from steersman.workloads.kinds import (
    Dependency,
    EnvVar,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableReplicaSetStatus,
    ExecutableSpec,
    ExecutableStatus,
    ExecutableTemplate,
    ProcessAdditions,
    Service,
    ServiceSpec,
    ServiceStatus,
)
from steersman.workloads.launches import LaunchError, prepare
from steersman.workloads.lifecycle_key import lifecycle_key
from steersman.workloads.templates import Address, Addresses, NotYet, TemplateError, calls, expand

ADDRESSES = Addresses(
    serving={"api": Address("127.0.0.1", 5001), "new": Address()},
    services={"db": Address("127.0.0.1", 5432), "soon": Address(), "v6": Address("::1", 80)},
)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ('{{portForServing "api"}}', "5001"),
        ('{{ addressForServing "api" }}:{{ portForServing "api" }}', "127.0.0.1:5001"),
        ('postgres://{{addressFor "db"}}:{{portFor "db"}}/x', "postgres://127.0.0.1:5432/x"),
        ('a {{- portFor "db" -}} b', "a5432b"),
        ("{{portFor `default/db`}}", "5432"),
        ('{{addressFor "v6"}}', "::1"),
        ("{{ .Values.other }} {{end}}", "{{ .Values.other }} {{end}}"),
    ],
)
def test_templates_are_replaced(text, result):
    assert expand(text, ADDRESSES) == result


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{{portFor "missing"}}', NotYet, "Service missing to be created"),
        ('{{portFor "soon"}}', NotYet, "Service soon to get a port"),
        ('{{addressFor "soon"}}', NotYet, "Service soon to get an address"),
        ('{{portForServing "new"}}', NotYet, "Service new to get a port"),
        ('{{portForServing "db"}}', TemplateError, "Service db, which this workload does not produce"),
    ],
)
def test_a_template_that_cannot_be_filled_in_says_why(text, error, message):
    with pytest.raises(error, match=message):
        expand(text, ADDRESSES)


def test_the_services_that_templates_name():
    found = calls(['{{portFor "db"}} {{portForServing "api"}}', "{{.Other}}", '{{addressFor "ns/cache"}}'])
    assert (found.serving, found.reached) == ({"api"}, {"db", "cache"})


def test_precedence_of_variables():
    """Ambient, files in their order, spec with templates: later ones win."""
    environment = effective_environment(
        {"HOME": "/home", "A": "ambient", "B": "ambient", "C": "ambient", "T": "{{x}}"},
        [{"A": "file 1", "B": "file 1"}, {"B": "file 2"}],
        [EnvVar(name="C", value='{{portFor "db"}}')],
        lambda text: expand(text, ADDRESSES),
    )
    assert environment == {"HOME": "/home", "A": "file 1", "B": "file 2", "C": "5432", "T": "{{x}}"}


def test_a_file_of_variables():
    text = "\ufeff# comment\nA=1\nexport B = two words  # why\n\nC='a # b'\nD=\"x\\ny\"\nE=\nF=a=b#c\nG= # empty\n"
    expected = {"A": "1", "B": "two words", "C": "a # b", "D": "x\ny", "E": "", "F": "a=b#c", "G": ""}
    assert parse_env_file(text, ".env") == expected


def test_a_broken_file_of_variables_names_the_line():
    with pytest.raises(ValueError, match=r"\.env, line 2: write NAME=value"):
        parse_env_file("A=1\nnonsense\n", ".env")


@pytest.mark.parametrize(
    "variable",
    [
        ("DB_PASSWORD", "x"),
        ("API_KEY", "x"),
        ("GITHUB_TOKEN", "x"),
        ("ConnectionStrings__db", "Host=x"),
        ("SETTINGS", "Host=x;Password=abc"),
        ("URL", "postgres://me:secret@host/db"),
        ("JWT", "eyJhbGciOi.eyJzdWIi.c2ln"),
        ("PEM", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("ANY", "ghp_0123456789abcdef"),
    ],
)
def test_secrets_are_masked(variable):
    assert masked(*variable) == MASK


@pytest.mark.parametrize(
    "variable",
    [
        ("PWD", "/src"),
        ("PATH", "/bin"),
        ("TOKEN", ""),
        ("AUTHOR", "me"),
        ("SSH_AUTH_SOCK", "/run/x"),
        ("KEYBOARD", "us"),
        ("TOKEN_FILE", "/run/secrets/token"),
        ("URL", "http://localhost:80/a:b@c"),
    ],
)
def test_plain_values_are_shown(variable):
    assert masked(*variable) == variable[1]


def test_a_status_shows_a_variable_that_is_not_utf_8():
    """The service inherits its bytes; a status that could not be written would leave the service starting for ever."""
    assert shown_environment({"NAME": "caf\udce9"}) == [EnvVar(name="NAME", value="caf\ufffd")]


def test_a_status_shows_the_environment_sorted():
    assert shown_environment({"B": "1", "A_TOKEN": "x"}) == [
        EnvVar(name="A_TOKEN", value=MASK),
        EnvVar(name="B", value="1"),
    ]


SPEC = {"executable_path": "/bin/a", "args": ["x"], "env_files": [".env"]}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"start": False, "stop": True, "mode": "persistent"}, True),
        ({"env": [EnvVar(name="B"), EnvVar(name="A", value="1")]}, True),
        ({"args": ["y"]}, False),
        ({"executable_path": "/bin/b"}, False),
        ({"working_directory": "/"}, False),
    ],
)
def test_the_lifecycle_key_changes_with_what_the_program_starts_with(change, same):
    variables = [EnvVar(name="A", value="1"), EnvVar(name="B")]
    base = ExecutableSpec(**SPEC, env=variables)
    other = ExecutableSpec(**{**SPEC, "env": variables, **change})
    assert (lifecycle_key(base, {".env": "A=1"}) == lifecycle_key(other, {".env": "A=1"})) is same


def test_the_lifecycle_key_changes_with_the_contents_of_files_of_variables():
    spec = ExecutableSpec(**SPEC)
    assert lifecycle_key(spec, {".env": "A=1"}) != lifecycle_key(spec, {".env": "A=2"})


def test_an_explicit_lifecycle_key_wins():
    assert lifecycle_key(ExecutableSpec(**SPEC, lifecycle_key="mine"), {".env": ""}) == "mine"


def executable(name: str, **conditions: tuple[str, str]) -> Executable:
    found = [
        Condition(type=kind, status=status, reason="Why", message=message)
        for kind, (status, message) in conditions.items()
    ]
    status = ExecutableStatus(conditions=found)
    return Executable(metadata=ObjectMeta(name=name), spec=ExecutableSpec(executable_path="a"), status=status)


def service(state: str) -> Service:
    return Service(metadata=ObjectMeta(name="db"), spec=ServiceSpec(), status=ServiceStatus(state=state))


@pytest.mark.parametrize(
    ("kind", "condition", "found", "words"),
    [
        ("Executable", "Started", None, "Executable db to be created"),
        ("Executable", "Started", executable("db"), "Executable db to start"),
        ("Executable", "Started", executable("db", Started=("True", "")), ""),
        (
            "Executable",
            "Healthy",
            executable("db", Started=("True", ""), Healthy=("False", "2 of 3 probes fail")),
            "Executable db to become healthy: 2 of 3 probes fail",
        ),
        (
            "Executable",
            "Completed",
            executable("db", Completed=("False", "it ended with exit code 1")),
            "Executable db to complete: it ended with exit code 1",
        ),
        ("Executable", "Completed", executable("db", Completed=("True", "")), ""),
        ("Service", "Started", service("NotReady"), "Service db to be ready: it has no endpoint"),
        ("Service", "Started", service("Ready"), ""),
    ],
)
def test_a_dependency_says_what_it_waits_for(kind, condition, found, words):
    assert unmet(Dependency(kind=kind, name="db", condition=condition), found) == words


@pytest.mark.parametrize(
    ("condition", "served", "words"),
    [
        ("Started", ("False", "port 5432 is in use by postgres"), "to be served: port 5432 is in use by postgres"),
        ("Healthy", ("False", "port 5432 is in use by postgres"), "to be served: port 5432 is in use by postgres"),
        ("Completed", ("False", "port 5432 is in use by postgres"), ""),
        ("Started", ("True", ""), ""),
        ("Started", None, "to be served: Service db has no address yet"),
    ],
)
def test_a_workload_whose_address_another_program_has_meets_no_dependency(condition, served, words):
    """A migration would run against the database of that program."""
    db = executable("db", Started=("True", ""), Healthy=("True", ""), Completed=("True", ""))
    db.metadata.annotations = {"service-producer": '[{"serviceName": "db"}]'}
    replicas = ExecutableReplicaSet(
        metadata=ObjectMeta(name="db"),
        spec=ExecutableReplicaSetSpec(template=ExecutableTemplate(annotations=db.metadata.annotations, spec=db.spec)),
        status=ExecutableReplicaSetStatus(conditions=db.status.conditions),
    )
    status = None
    if served is not None:
        found = Condition(type="Served", status=served[0], reason="Why", message=served[1])
        status = ServiceStatus(state="Ready", conditions=[found])
    its_service = Service(metadata=ObjectMeta(name="db"), spec=ServiceSpec(), status=status)
    for workload in (db, replicas):
        needed = Dependency(kind=workload.kind, name="db", condition=condition)
        expected = f"{workload.kind} db {words}" if words else ""
        assert unmet(needed, workload, lambda *_: its_service) == expected


def test_all_unmet_dependencies_are_named():
    needs = [Dependency(kind="Executable", name="a"), Dependency(kind="Container", name="b")]
    assert waiting_for(needs, lambda *_: None) == "Executable a to be created; Container b to be created"


def test_a_reason_does_not_read_as_a_further_dependency():
    """Every place that shows them splits the sentence between dependencies."""
    other = executable("a", Started=("False", "port 80 is in use; stop it, or change it"))
    needs = [Dependency(kind="Executable", name="a"), Dependency(kind="Executable", name="b")]
    told = waiting_for(needs, lambda _, name: other if name == "a" else None)
    assert told == "Executable a to start: port 80 is in use, stop it, or change it; Executable b to be created"


def test_a_cycle_of_dependencies_is_named():
    graph = {"a": ["b"], "b": ["c", "d"], "c": [], "d": ["a"], "e": ["a"]}

    def dependencies_of(kind: str, name: str) -> list[Dependency]:
        return [Dependency(kind="Executable", name=each) for each in graph[name]]

    assert cycle("Executable", "a", dependencies_of) == ["Executable a", "Executable b", "Executable d", "Executable a"]
    assert cycle("Executable", "e", dependencies_of) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"steersman": ProcessAdditions(stop_signal="SIGSTOPP")}, "stopSignal must be the name of a signal"),
        ({"args": ['{{portForServing "other"}}']}, "which this workload does not produce"),
        ({"args": ["a\0b"]}, "zero byte"),
    ],
    ids=["unknown signal", "impossible template", "zero byte"],
)
def test_a_spec_that_cannot_be_started_says_why(spec, message):
    given = ExecutableSpec(executable_path="/bin/web", **spec)
    with pytest.raises(LaunchError, match=message):
        prepare(given, ambient={}, files={}, addresses=Addresses(), folder="/")


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("postgres:17", "docker.io/library/postgres:17"),
        ("owner/app", "docker.io/owner/app"),
        ("localhost/app:1", "localhost/app:1"),
        ("quay.io/owner/app@sha256:0", "quay.io/owner/app@sha256:0"),
        ("registry:5000/app", "registry:5000/app"),
    ],
)
def test_an_image_without_a_registry_comes_from_docker_hub(image, full):
    assert full_image_name(image) == full


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "PATH", "GCONV_PATH", "GLIBC_TUNABLES", "CONTAINER_HOST", "_CONTAINERS_X", "BUILDAH_RUNTIME"),
        *("SSH_ASKPASS", "BASH_FUNC_echo%%", "SHELLOPTS", "PYTHONPATH", "PERL5OPT", "OPENSSL_CONF"),
    ],
)
def test_no_variable_of_a_container_changes_the_container_runtime(name):
    """Values with several lines go through the environment of the runtime, which may run as root."""
    with pytest.raises(ContainerRuntimeError, match=f"the value of {name} has several lines"):
        environment({name: "/tmp/evil.so:\n"})
    kept = dict.fromkeys(("PLAIN", "SSH_PRIVATE_KEY", "PYTHON_SCRIPT"), "a\nb")
    assert environment(kept).variables == kept
