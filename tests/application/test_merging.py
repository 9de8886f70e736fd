"""Several files, included files, extended services, and the selection of services."""

from __future__ import annotations

from pathlib import Path

import pytest
from application.samples import load, only, problems

from steersman.application import Application, ApplicationError, select_services

BELOW = """
services:
  a:
    image: one
    command: [x, y]
    environment: [A=1, B=1]
    labels: {l: "1"}
    ports: ["80:80", "81:81"]
    volumes: ["./one:/data", "./two:/other"]
    depends_on: [b]
    healthcheck: {test: [CMD, x], interval: 5s}
    build: ./app
    dns: 1.1.1.1
  b:
    image: b
"""


def merged(folder: Path, above: str) -> Application:
    """The application of a file and its override."""
    lines = "".join(f"    {line}\n" for line in above.splitlines())
    return load(folder, {"compose.yaml": BELOW, "compose.override.yaml": f"services:\n  a:\n{lines}"})


@pytest.mark.parametrize(
    ("above", "field", "expected"),
    [
        ("image: two", "image", "two"),
        ("command: z", "command", ("z",)),
        ("command: null", "command", None),
        ("image: null", "image", "one"),
        ("environment: {B: 2, C: 3}", "environment", {"A": "1", "B": "2", "C": "3"}),
        ("environment: [HOME, A]", "environment", {"HOME": "/home/user", "B": "1"}),
        ("environment: {A: , B: null}", "environment", {}),
        ("labels: [m=2]", "labels", {"l": "1", "m": "2"}),
        ("labels: [l]", "labels", {"l": ""}),
        ("environment: !override {Z: 1}", "environment", {"Z": "1"}),
        ("environment: !reset {}", "environment", {}),
        ("environment: {A: !reset null}", "environment", {"B": "1"}),
        ("command: !reset null", "command", None),
    ],
)
def test_values(tmp_path: Path, above: str, field: str, expected: object) -> None:
    """Mappings merge, scalars and commands are replaced; !reset and !override do what Compose says."""
    assert getattr(merged(tmp_path, above).services["a"], field) == expected


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ('ports: ["82:80"]', [(80, 80), (81, 81), (82, 80)]),
        ('ports: ["80:80"]', [(80, 80), (81, 81)]),
        ("ports: [{target: 80, published: 80}]", [(80, 80), (81, 81)]),
        ('ports: !override ["9:9"]', [(9, 9)]),
        ("ports: !reset []", []),
    ],
)
def test_ports(tmp_path: Path, above: str, expected: list[tuple[int, int]]) -> None:
    """Ports append; the same port counts once."""
    assert [(port.published, port.target) for port in merged(tmp_path, above).services["a"].ports] == expected


def test_a_value_after_a_reset(tmp_path: Path) -> None:
    """A value of a file after the one with !reset counts, also in the service that extends the other."""
    one = "services:\n  a: {image: x, ports: ['1:1'], environment: {A: 1}}\n"
    two = "services:\n  a: {ports: !reset [], environment: !reset {}}\n  b: {image: x, ports: !reset []}\n"
    three = "services:\n  a: {ports: ['3:3'], environment: {C: 3}}\n  c: {extends: b}\n"
    two += "  d: {extends: b, ports: ['4:4']}\n"
    files = {"compose.yaml": one, "two.yaml": two, "three.yaml": three}
    services = load(tmp_path, files, files=list(map(Path, files))).services
    assert {name: [port.published for port in each.ports] for name, each in services.items()} == {
        "a": [3],
        "b": [],
        "c": [],
        "d": [4],
    }
    assert services["a"].environment == {"C": "3"}


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ("{soft: 1, hard: 2}", "5", "nofile=5"),
        ("5", "{soft: 1, hard: 2}", "nofile=1:2"),
        ("{soft: 1, hard: 2}", "{soft: 3, hard: 4}", "nofile=3:4"),
    ],
)
def test_limits(tmp_path: Path, below: str, above: str, expected: str) -> None:
    """A limit replaces another one in either form."""
    files = {
        f"{name}.yaml": f"services: {{a: {{image: x, ulimits: {{nofile: {limit}}}}}}}"
        for name, limit in (("one", below), ("two", above))
    }
    service = only(load(tmp_path, files, files=list(map(Path, files))))
    assert service.run_arguments == ("--ulimit", expected)


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ('["a:1.1.1.1"]', "{b: 2.2.2.2}", ["a:1.1.1.1", "b:2.2.2.2"]),
        ("{a: [1.1.1.1, 1.1.1.2]}", '["b=2.2.2.2", "a=1.1.1.1"]', ["a:1.1.1.1", "a:1.1.1.2", "b:2.2.2.2"]),
        ("{a: 1.1.1.1}", '{a: "::1"}', ["a:1.1.1.1", "a:::1"]),
    ],
)
def test_hosts(tmp_path: Path, below: str, above: str, expected: list[str]) -> None:
    """Hosts of both files remain, in either form: a name may have several addresses."""
    hosts = {"one.yaml": below, "two.yaml": above}
    files = {name: f"services: {{a: {{image: x, extra_hosts: {each}}}}}" for name, each in hosts.items()}
    service = only(load(tmp_path, files, files=list(map(Path, files))))
    assert sorted(service.run_arguments[1::2]) == expected


def test_keyed_lists_and_nested_values(tmp_path: Path) -> None:
    """Volumes merge by target, dependencies by service, a build in one string with one in a mapping."""
    above = """volumes: ["./three:/data"]
depends_on: {c: {condition: service_started, required: false}}
healthcheck: {test: [CMD, y]}
build: {target: dev}
dns: [2.2.2.2]"""
    application = merged(tmp_path, above)
    service = application.services["a"]
    assert [(mount.source, mount.target) for mount in service.volumes] == [
        (f"{tmp_path}/three", "/data"),
        (f"{tmp_path}/two", "/other"),
    ]
    assert [depends.service for depends in service.depends_on] == ["b"]
    assert "a depends on 'c', which is not declared" in str(application.warnings[0])
    assert service.healthcheck is not None
    assert (service.healthcheck.action.command, service.healthcheck.interval) == (["y"], 5.0)
    assert service.build is not None
    assert (service.build.context, service.build.target) == (f"{tmp_path}/app", "dev")
    assert service.run_arguments == ("--dns", "1.1.1.1", "--dns", "2.2.2.2")


def test_a_list_of_dependencies_over_a_mapping(tmp_path: Path) -> None:
    """A name alone means service_started, also over another condition; what it does not say stays."""
    below = "{b: {condition: service_healthy, restart: true}, c: {condition: service_completed_successfully}}"
    files = {
        "compose.yaml": "services:\n" + "".join(f"  {name}: {{image: x}}\n" for name in "bc"),
        "one.yaml": f"services: {{a: {{image: x, depends_on: {below}}}}}",
        "two.yaml": "services: {a: {depends_on: [b]}}",
    }
    found = load(tmp_path, files, files=list(map(Path, files))).services["a"].depends_on
    assert [(each.service, each.condition, each.restart) for each in found] == [
        ("b", "service_started", True),
        ("c", "service_completed_successfully", False),
    ]


def test_named_files_have_no_override(tmp_path: Path) -> None:
    """With -f only the named files count, and their paths begin at the folder of the first."""
    files = {"compose.yaml": BELOW, "compose.override.yaml": "wrong: 1", "more/x.yaml": "services: {b: {build: .}}"}
    application = load(tmp_path, files, files=[Path("compose.yaml"), Path("more/x.yaml")])
    assert application.services["b"].build is not None
    assert application.services["b"].build.context == str(tmp_path)


def test_anchors(tmp_path: Path) -> None:
    """Anchors, aliases and << are YAML's own; the own keys of a mapping win."""
    text = """
x-base: &base {image: base, restart: always, environment: &env {A: 1}}
services:
  a: {<<: *base, image: own}
  b:
    <<: [*base, {user: u, restart: no}]
    environment: {<<: *env, B: 2}
"""
    services = load(tmp_path, {"compose.yaml": text}).services
    assert (services["a"].image, services["a"].restart.policy) == ("own", "always")
    assert (services["b"].user, services["b"].restart.policy) == ("u", "always")
    assert services["b"].environment == {"A": "1", "B": "2"}


def test_include(tmp_path: Path) -> None:
    """An included file has its own folder and its own .env; the includer wins."""
    files = {
        "steersman.yaml": """
include:
  - db/compose.yaml
  - {path: [more/one.yaml, more/two.yaml], project_directory: ., env_file: own.env}
services: {web: {command: x}, db: {image: mine}}
""",
        "db/compose.yaml": "services: {db: {image: $TAG, build: ., environment: [TAG, OTHER]}}\nvolumes: {data: }\n",
        "db/.env": "TAG=db\nOTHER=$TAG\n",
        "more/one.yaml": "services: {m: {build: .}}",
        "more/two.yaml": "services: {m: {user: $U}}",
        "own.env": "U=root",
    }
    application = load(tmp_path, files, environment={"OTHER": "shell"}, name="p")
    assert set(application.services) == {"web", "db", "m"}
    database, more = application.services["db"], application.services["m"]
    assert (database.image, database.environment) == ("mine", {"TAG": "db", "OTHER": "shell"})
    assert database.build is not None
    assert database.build.context == f"{tmp_path}/db"
    assert more.build is not None
    assert (more.build.context, more.user) == (str(tmp_path), "root")
    assert application.volumes["data"].name == "p_data"
    assert {tmp_path / name for name in files} <= {*application.files}


def test_a_file_that_several_includes_extend_has_the_variables_of_each(tmp_path: Path) -> None:
    """A shared base is not the one that was read first: its variables come from the file that extends it."""
    extending = "services: {NAME: {extends: {file: base.yaml, service: base}}}"
    files = {
        "steersman.yaml": "include: [{path: c.yaml, env_file: c.env}, {path: d.yaml, env_file: d.env}]\n"
        + extending.replace("NAME", "own"),
        "base.yaml": "services: {base: {command: x, environment: {V: '${V:-none}'}}}",
        **{f"{name}.yaml": extending.replace("NAME", name) for name in "cd"},
        **{f"{name}.env": f"V={name}\n" for name in "cd"},
    }
    services = load(tmp_path, files).services
    assert {name: each.environment["V"] for name, each in services.items()} == {"c": "c", "d": "d", "own": "none"}


def test_keys_of_an_included_file(tmp_path: Path) -> None:
    """A misspelled key of an included file is an error, and one without an effect is in the warning."""
    files = {"steersman.yaml": "include: [db.yaml]\nservices: {a: {command: x}}\n", "db.yaml": "servics: {}\n"}
    assert f"{tmp_path}/db.yaml:1:1: an included file has no key 'servics'; did you mean services?" in problems(
        tmp_path, files
    )
    more = {"db.yaml": "name: db\ninclude: []\nx-a: 1\nobjects: [none.yaml]\n"}
    [warning] = load(tmp_path, files | more).warnings
    assert warning.text == "keys without an effect here: name (db.yaml:1), objects (db.yaml:4)"


def test_extends(tmp_path: Path) -> None:
    """A service extends one of its file or of another, whose paths begin at its own folder."""
    files = {
        "compose.yaml": """
services:
  a:
    extends: {file: lib/base.yaml, service: web}
    environment: {B: 2}
  b: {extends: a, image: b}
""",
        "lib/base.yaml": """
services:
  web: {extends: root, volumes: ["./x:/x"], environment: [A=1, B=1], ports: ["80:80"]}
  root: {image: base, env_file: base.env, command: run}
""",
        "lib/base.env": "E=1\n",
    }
    services = load(tmp_path, files).services
    assert list(services) == ["a", "b"]
    assert (services["a"].image, services["b"].image) == ("base", "b")
    assert services["b"].environment == {"E": "1", "A": "1", "B": "2"}
    assert services["a"].volumes[0].source == f"{tmp_path}/lib/x"
    assert services["b"].command == ("run",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"compose.yaml": "include: [a.yaml]", "a.yaml": "include: [compose.yaml]"}, "the files include each other"),
        ({"compose.yaml": "include: [compose.yaml]"}, "the files include each other"),
        ({"compose.yaml": "services: {a: {extends: b}, b: {extends: a}}"}, "extend each other: a -> b -> a"),
        ({"compose.yaml": "services: {a: {extends: a}}"}, "extend each other: a -> a"),
        (
            {
                "compose.yaml": "services: {a: {extends: {file: b.yaml, service: b}}}",
                "b.yaml": "services: {b: {extends: {file: compose.yaml, service: a}}}",
            },
            "extend each other: a -> b -> a",
        ),
        ({"compose.yaml": "services: {a: {extends: bse}, base: {image: x}}"}, "no service 'bse'; did you mean base?"),
        ({"compose.yaml": "include: [none.yaml]"}, "cannot read"),
        ({"compose.yaml": "include: ['https://x/y.yaml']"}, "include supports only local files"),
        (
            {"compose.yaml": "services: {a: {depends_on: [b]}, b: {depends_on: [a]}}"},
            "wait for each other: a -> b -> a",
        ),
    ],
)
def test_cycles_and_missing_parts(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    """A cycle ends in an error that names it."""
    assert expected in problems(tmp_path, files)


PROFILES = """
services:
  web: {command: x, depends_on: [db]}
  db: {command: x}
  debug: {command: x, profiles: [dev], depends_on: [tool]}
  tool: {command: x, profiles: [dev]}
  other: {command: x, profiles: [test]}
  needs: {command: x, profiles: [alone], depends_on: [tool]}
  maybe: {command: x, profiles: [alone], depends_on: {tool: {required: false, condition: service_started}}}
"""


@pytest.mark.parametrize(
    ("names", "profiles", "expected"),
    [
        ((), (), "web db"),
        ((), ("dev",), "web db debug tool"),
        ((), ("dev", "test"), "web db debug tool other"),
        (("web",), (), "web db"),
        (("db",), (), "db"),
        (("debug",), (), "debug tool"),
        (("other",), ("dev",), "other"),
        (("maybe",), (), "maybe"),
        (("needs",), ("dev",), "tool needs"),
        ((), ("*",), "web db debug tool other needs maybe"),
    ],
)
def test_selection(tmp_path: Path, names: tuple[str, ...], profiles: tuple[str, ...], expected: str) -> None:
    """Profiles enable services; a named service enables its own profiles, and its dependencies come along."""
    selected = select_services(load(tmp_path, PROFILES), names, profiles)
    assert " ".join(selected.services) == expected


def test_selection_by_the_environment(tmp_path: Path) -> None:
    """COMPOSE_PROFILES counts if no profile is given."""
    application = load(tmp_path, PROFILES, environment={"COMPOSE_PROFILES": "test"})
    assert "other" in select_services(application).services
    assert "other" not in select_services(application, profiles=["dev"]).services


def test_wrong_selections(tmp_path: Path) -> None:
    """An unknown name has a suggestion, and a dependency that is not enabled is named."""
    application = load(tmp_path, PROFILES)
    with pytest.raises(ApplicationError, match="no service wbe; did you mean web"):
        select_services(application, ["wbe"])
    with pytest.raises(ApplicationError, match=r"needs depends on tool, which is not enabled \(profiles: dev\)"):
        select_services(application, ["needs"])


def test_a_file_with_several_documents(tmp_path: Path) -> None:
    """Documents of one file merge in their order."""
    assert only(load(tmp_path, "services: {a: {command: x}}\n---\nservices: {a: {user: u}}\n")).user == "u"
