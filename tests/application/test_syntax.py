"""Variables, dotenv files, words of commands, ports, volumes, durations: each by a table."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from application.samples import load, only, problems

from steersman.application import load_application
from steersman.workloads.kinds import TcpProbe

SET = {"NAME": "web", "EMPTY": "", "PORT": "8080"}
OTHER = 65534


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$NAME", "web"),
        ("${NAME}", "web"),
        ("a-${NAME}-$PORT.", "a-web-8080."),
        ("$$NAME", "$NAME"),
        ("$${NAME}", "${NAME}"),
        ("100$", "100$"),
        ("$1 $( )", "$1 $( )"),
        ("${MISSING:-x}", "x"),
        ("${MISSING-x}", "x"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY-x}", ""),
        ("${NAME:-x}", "web"),
        ("${NAME:+y}", "y"),
        ("${EMPTY:+y}", ""),
        ("${EMPTY+y}", "y"),
        ("${MISSING+y}", ""),
        ("${NAME:?no}", "web"),
        ("${EMPTY?no}", ""),
        ("${MISSING:-${NAME}}", "web"),
        ("${MISSING:-${OTHER:-$NAME}-${PORT}}", "web-8080"),
        ("${MISSING:-a:-b}", "a:-b"),
        ('${NAME:-{"a": {}}}', "web"),
        ('${MISSING:-{"a": {}}}', '{"a": {}}'),
        ('${MISSING:-{{portFor "${NAME}"}}}/x', '{{portFor "web"}}/x'),
        ("${NAME:-a{b}${NAME}{", "webweb{"),
        ("${MISSING:-$${x}}", "${x}"),
        ("${MISSING:-http://x/y?z}", "http://x/y?z"),
        ("$MISSING", ""),
    ],
)
def test_variables(tmp_path: Path, text: str, expected: str) -> None:
    """Each operator of Compose has its meaning."""
    service = only(load(tmp_path, f"services: {{a: {{command: x, environment: {{V: '{text}'}}}}}}", environment=SET))
    assert service.environment["V"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${MISSING:?set it}", "the variable MISSING is required: set it"),
        ("${EMPTY:?$NAME needs it}", "the variable EMPTY is required: web needs it"),
        ("${MISSING?}", "the variable MISSING is required"),
        ("${NAME", "${ has no closing brace"),
        ("${}", "has no variable name"),
        ("${NAME/a/b}", "the operators are"),
        ("${A:-" * 30 + "}" * 30, "nested deeper than"),
    ],
)
def test_wrong_variables(tmp_path: Path, text: str, expected: str) -> None:
    """A required variable and a text that Compose rejects are errors with their place."""
    found = problems(tmp_path, f"services:\n  a:\n    command: x\n    user: '{text}'\n", environment=SET)
    assert f"{tmp_path}/steersman.yaml:4:11: " in found
    assert expected in found


def test_an_unset_variable_is_a_warning(tmp_path: Path) -> None:
    """A misspelled variable does not pass without a word."""
    application = load(tmp_path, "services: {a: {command: 'echo $MISSING'}}")
    words = (
        "the variable MISSING is not set, so it is empty; set it in the environment or in .env, or write $$MISSING if"
    )
    assert f"{words} a shell (shell: true) of the service is to replace it" in str(application.warnings[0])
    application = load(tmp_path / "b", {"compose.yaml": "services: {a: {image: x, command: 'echo $MISSING'}}"})
    assert f"{words} a shell of the service is to replace it" in str(application.warnings[0])


def test_keys_and_extensions_are_not_interpolated(tmp_path: Path) -> None:
    """Only values have variables; an extension may contain anything."""
    application = load(
        tmp_path, "x-note: ${not valid\nservices: {a: {command: x, environment: {$NAME: 1}}}", environment=SET
    )
    assert only(application).environment == {"$NAME": "1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("A: 1", {"A": "1"}),
        ("export A=1", {"A": "1"}),
        ("export=1", {"export": "1"}),
        ("# c\n\n  A = 1  \r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1 # c\nB=1#c", {"A": "1", "B": "1#c"}),
        ("A='x # $NAME \\n'", {"A": "x # $NAME \\n"}),
        ('A="x # $NAME\\n\\$NAME"', {"A": "x # web\n$NAME"}),
        ('A="one\ntwo" # c\nB=3', {"A": "one\ntwo", "B": "3"}),
        ("A='it\\'s'", {"A": "it's"}),
        ("A=${NAME:-x}-$B\nB=1\nC=$A", {"A": "web-", "B": "1", "C": "web-"}),
        ("NAME\nMISSING", {"NAME": "web"}),
        ("A=\nB=''\nC= # c", {"A": "", "B": "", "C": ""}),
        ("NAME=x\nA=$NAME", {"NAME": "x", "A": "web"}),
        ("\ufeffA=1", {"A": "1"}),
        ("a.b-c=1", {"a.b-c": "1"}),
    ],
)
def test_dotenv(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    """A file of ``env_file`` has the format of Compose."""
    (tmp_path / "variables").write_bytes(text.encode())
    service = only(load(tmp_path, "services: {a: {command: x, env_file: variables}}", environment=SET))
    assert service.environment == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A='x", ":1:1: A: the single quote is not closed"),
        ("X=1\nA B=2", ":2:1: expected NAME=value"),
        ("A=${", ":1:1: A: ${"),
    ],
)
def test_wrong_dotenv(tmp_path: Path, text: str, expected: str) -> None:
    """A mistake in such a file is reported with its place there."""
    (tmp_path / "variables").write_text(text)
    assert f"{tmp_path}/variables{expected}" in problems(tmp_path, "services: {a: {command: x, env_file: variables}}")


def test_a_variable_in_an_env_file_stands_for_that_of_environment(tmp_path: Path) -> None:
    """As in Compose; a file that comes before has a lower rank, and a shell a higher one."""
    (tmp_path / "one").write_text("A=one\nB=one\nNAME=one\n")
    (tmp_path / "two").write_text("C=$A-$B-$NAME\n")
    text = "services: {a: {command: x, env_file: [one, two], environment: {B: own, NAME: own, A: }}}"
    service = only(load(tmp_path, text, environment=SET))
    assert service.environment == {"B": "own", "NAME": "own", "C": "one-own-web"}


@pytest.mark.skipif(os.geteuid() != 0, reason="makes files of another user")
@pytest.mark.parametrize("form", ["env_file: db.env", "env_file: [{path: db.env, format: raw}]"])
def test_an_env_file_of_another_user_reads_no_variables_of_other_services(tmp_path: Path, form: str) -> None:
    """A service with that user could otherwise read a password in .env that is meant for another service."""
    (tmp_path / ".env").write_text("PASSWORD=secret\n")
    file = tmp_path / "db.env"
    file.write_text("PASSWORD\nHOME_URL=/x\n" if "raw" in form else "A=${PASSWORD}\nPASSWORD\nB=${OWN}-${HOME_URL-}\n")
    text = f"services: {{a: {{command: x, {form}, environment: {{OWN: own}}}}}}"
    own = only(load(tmp_path, text, environment={"HOME_URL": "/"})).environment
    assert own["PASSWORD"] == "secret"
    os.chown(file, OTHER, OTHER)
    application = load(tmp_path, text, environment={"HOME_URL": "/"})
    assert "secret" not in only(application).environment.values()
    assert only(application).environment == {
        "OWN": "own",
        **({"HOME_URL": "/x"} if "raw" in form else {"A": "", "B": "own-"}),
    }
    (warning,) = map(str, application.warnings)
    assert "db.env belongs to another user (uid 65534), so " in warning
    assert "PASSWORD" in warning
    assert "cannot use variables of the shell or .env: set them in environment" in warning
    # The owner of the application's file decides everything anyway.
    os.chown(tmp_path / "steersman.yaml", OTHER, OTHER)
    assert only(load_application(tmp_path, environment={})).environment["PASSWORD"] == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="makes files of another user")
def test_a_link_of_another_user_gives_an_env_file_no_variables_of_other_services(tmp_path: Path) -> None:
    """It could lead to the file of another service, which stands for a password."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "api.env").write_text("A=$PASSWORD\n")
        (place / "db.env").symlink_to("api.env")
        text = f"services: {{a: {{command: x, env_file: {place / 'db.env'}}}}}"
        assert only(load(tmp_path, text, environment={"PASSWORD": "secret"})).environment == {"A": "secret"}
        os.chown(place / "db.env", OTHER, OTHER, follow_symlinks=False)
        assert only(load(tmp_path, text, environment={"PASSWORD": "secret"})).environment == {"A": ""}


def test_label_files(tmp_path: Path) -> None:
    """A file of ``label_file`` has the format of Compose: a variable is a label of an earlier line or file."""
    (tmp_path / "one.labels").write_text('team="front end" # c\nexport tier: web\nfull=$team-${tier}\nhome=$NAME\n')
    (tmp_path / "two.labels").write_text("tier='$team'\nboth=$tier\nteam\nlast=1\n")
    text = "services: {a: {command: x, label_file: [one.labels, two.labels], labels: {last: '2'}}}"
    assert only(load(tmp_path, text, environment=SET)).labels == {
        "team": "front end",
        "tier": "$team",
        "full": "front end-web",
        "home": "",
        "both": "web",
        "last": "2",
    }
    (tmp_path / "one.labels").write_text("a=1\nb c=2\n")
    assert f"{tmp_path}/one.labels:2:1: expected NAME=value" in problems(tmp_path, text)


def test_env_file_options(tmp_path: Path) -> None:
    """A file may be missing if the key says so; a raw file is literal; the last file wins, then ``environment``."""
    (tmp_path / "one.env").write_text("A=1\nB=1\nC=1\n")
    (tmp_path / "raw.env").write_text("B='$x' # y\nNAME\n")
    text = """
services:
  a:
    command: x
    env_file:
      - one.env
      - {path: none.env, required: false}
      - {path: raw.env, format: raw}
    environment: [C=2, D]
"""
    application = load(tmp_path, text, environment={**SET, "D": "4"})
    assert only(application).environment == {"A": "1", "B": "'$x' # y", "NAME": "web", "C": "2", "D": "4"}
    assert tmp_path / "raw.env" in application.files
    assert "steersman.yaml:1:39: cannot read" in problems(tmp_path, "services: {a: {command: x, env_file: [none.env]}}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run it", ["run", "it"]),
        ("  a   b  ", ["a", "b"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ('a "it\'s" \'say "x"\'', ["a", "it's", 'say "x"']),
        (r"a b\ c \"d", ["a", "b c", '"d']),
        (r'a "b\"c"', ["a", 'b"c']),
        (r"a 'b\c'", ["a", r"b\c"]),
        ("a=b'c d'e", ["a=bc de"]),
        ("a '' \"\"", ["a", "", ""]),
        ("a '|' b", ["a", "|", "b"]),
        ('a --port={{portFor "db"}} b', ["a", '--port={{portFor "db"}}', "b"]),
        ('a "x {{portFor "db"}}"', ["a", 'x {{portFor "db"}}']),
    ],
)
def test_words(tmp_path: Path, text: str, expected: list[str]) -> None:
    """A command in one string has the words that Compose gives it; a template stays whole."""
    indented = f"services:\n  a:\n    command: |-\n      {text}\n"
    assert only(load(tmp_path, indented)).command == tuple(expected)


@pytest.mark.parametrize("text", ["a | b", "a && b", "a 2> b", "a; b"])
def test_compose_files_keep_the_meaning_of_compose(tmp_path: Path, text: str) -> None:
    """Compose drops a pipe silently; here a warning names the rest and the way out."""
    for service in (f"{{command: '{text}'}}", f"{{image: x, command: '{text}'}}"):
        application = load(tmp_path, {"compose.yaml": f"services: {{a: {service}}}"})
        assert only(application).command == ("a",)
        assert "is dropped, as in Compose; write a list with a shell" in str(application.warnings[0])
    application = load(tmp_path / "b", {"compose.yaml": "services: {a: {command: 'a $$B'}}"})
    assert (only(application).command, application.warnings) == (("a", "$B"), ())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a && b", "&& b"),
        ("a || b", "|| b"),
        ("a | b", "| b"),
        ("a; b", "; b"),
        ("a < b", "< b"),
        ("a 2> b", "> b"),
        ("serve --port $$PORT", "$PORT"),
        ("serve --port=$${PORT}", "${PORT}"),
        ("serve $$(id -u)", "$(id -u)"),
    ],
)
def test_a_process_that_needs_a_shell_and_has_none_is_an_error(tmp_path: Path, text: str, part: str) -> None:
    """Half of it would run, or the program would get the text $PORT."""
    file = f"services:\n  a:\n    command: {text}\n"
    expected = f"/steersman.yaml:3:14: command: only a shell understands '{part}': add shell: true to the service"
    assert expected in problems(tmp_path, file)
    service = only(load(tmp_path, f"{file}    shell: true\n"))
    assert service.command == ("/bin/sh", "-c", text.replace("$$", "$"))


@pytest.mark.parametrize("text", ["sh -c 'a && b $$PORT'", 'sh -c "a | b $$PORT"', r"a \$$PORT \;", "a 5$$"])
def test_quoted_text_is_for_the_program_itself(tmp_path: Path, text: str) -> None:
    assert not load(tmp_path, f"services:\n  a:\n    command: {text}\n").warnings


def test_a_shell_runs_the_whole_command(tmp_path: Path) -> None:
    service = only(load(tmp_path, "services: {a: {command: 'a | b', shell: true}}"))
    assert service.command == ("/bin/sh", "-c", "a | b")


def port(published: int | None, target: int | None, **others: Any) -> dict[str, Any]:
    return {"published": published, "target": target, "protocol": "tcp", "host_address": None, "name": None} | others


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8080:80", [port(8080, 80)]),
        ("22:22", [port(22, 22)]),
        ("80", [port(None, 80)]),
        ("127.0.0.1:8080:80", [port(8080, 80, host_address="127.0.0.1")]),
        ("127.0.0.1::80", [port(None, 80, host_address="127.0.0.1")]),
        ("'[::1]:8080:80'", [port(8080, 80, host_address="::1")]),
        ("0.0.0.0:53:53/udp", [port(53, 53, protocol="udp", host_address="0.0.0.0")]),
        ("8000-8002:9000-9002", [port(8000, 9000), port(8001, 9001), port(8002, 9002)]),
        ("8000-8010:80", [port(8000, 80)]),
        ("3000-3001", [port(None, 3000), port(None, 3001)]),
        ("{target: 80}", [port(None, 80)]),
        ("{target: 80, published: '8080', protocol: udp, host_ip: 127.0.0.1, name: n}",
         [port(8080, 80, protocol="udp", host_address="127.0.0.1", name="n")]),
        ("{published: 8080}", [port(8080, None)]),
        ("{}", [port(None, None)]),
    ],
)  # fmt: skip
def test_ports(tmp_path: Path, text: str, expected: list[dict[str, Any]]) -> None:
    """Each form of a port is read."""
    found = only(load(tmp_path, f"services:\n  a:\n    command: x\n    ports:\n      - {text}\n")).ports
    assert [{name: getattr(each, name) for name in each.__struct_fields__} for each in found] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80:80:80:80", "a port must be [ADDRESS:][PUBLISHED:]TARGET[/PROTOCOL], not '80:80:80:80'"),
        ("http", "a port must be"),
        ("70000", "a port must be at most 65535"),
        ("80-70", "a range must ascend"),
        ("1-3:1-2", "the published range and the target range must have the same length"),
        ("1-65535", "a range has at most 1000 ports"),
        ("80/sctp", "the protocol of a port must be one of tcp, udp, not 'sctp'"),
        ("localhost:80:80", "the address of a port must be an IP address"),
        ("{target: http}", "target must be a number from 1 to 65535, not 'http'"),
        ("{targt: 80}", "a port has no key 'targt'; did you mean target?"),
    ],
)
def test_wrong_ports(tmp_path: Path, text: str, expected: str) -> None:
    """A port that cannot be is reported with its place."""
    found = problems(tmp_path, f"services:\n  a:\n    command: x\n    ports:\n      - {text}\n")
    assert "steersman.yaml:5:" in found
    assert expected in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", ("volume", "", "/data", False)),
        ("data:/data", ("volume", "data", "/data", False)),
        ("data:/data:ro", ("volume", "data", "/data", True)),
        ("./src:/app:rw,z", ("bind", "HERE/src", "/app", False)),
        (".:/app:ro,cached", ("bind", "HERE", "/app", True)),
        ("../x:/app", ("bind", "ABOVE/x", "/app", False)),
        ("~/x:/app", ("bind", "/home/user/x", "/app", False)),
        ("/etc/x:/x", ("bind", "/etc/x", "/x", False)),
        ("{type: bind, source: ./a, target: /a, read_only: true}", ("bind", "HERE/a", "/a", True)),
        ("{type: volume, source: data, target: /a}", ("volume", "data", "/a", False)),
        ("{type: tmpfs, target: /a, tmpfs: {size: 1m}}", ("tmpfs", "", "/a", False)),
    ],
)
def test_volumes(tmp_path: Path, text: str, expected: tuple[Any, ...]) -> None:
    """Each form of a volume is read; a path begins at the folder of its file."""
    application = load(tmp_path, f"services:\n  a:\n    image: x\n    volumes:\n      - {text}\nvolumes: {{data: }}\n")
    [mount] = only(application).volumes
    source = expected[1].replace("HERE", str(tmp_path)).replace("ABOVE", str(tmp_path.parent))
    assert (mount.type, mount.source, mount.target, mount.read_only) == (expected[0], source, *expected[2:])


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("stop_grace_period", "1m30s", 90.0),
        ("stop_grace_period", "500ms", 0.5),
        ("stop_grace_period", "10", 10.0),
        ("stop_grace_period", "1h0.5s", 3600.5),
        ("scale", "3", 3),
        ("tty", "yes", True),
        ("tty", "'false'", False),
        ("user", "1000:1000", "1000:1000"),
        ("stop_signal", "SIGINT", "SIGINT"),
        ("profiles", "[a, b]", ("a", "b")),
    ],
)
def test_values(tmp_path: Path, key: str, text: str, expected: object) -> None:
    """Scalars have the type that their key needs, whatever YAML 1.1 makes of them."""
    assert getattr(only(load(tmp_path, f"services: {{a: {{command: x, {key}: {text}}}}}")), key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", ("no", None)),
        ("'no'", ("no", None)),
        ("always", ("always", None)),
        ("unless-stopped", ("unless-stopped", None)),
        ("on-failure", ("on-failure", None)),
        ("on-failure:3", ("on-failure", 3)),
    ],
)
def test_restart(tmp_path: Path, text: str, expected: tuple[str, int | None]) -> None:
    """A bare ``no`` is the policy of that name, not a boolean."""
    restart = only(load(tmp_path, f"services: {{a: {{command: x, restart: {text}}}}}")).restart
    assert (restart.policy, restart.maximum) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test: curl -f x", ("/bin/sh", "-c", "curl -f x")),
        ("test: [CMD, a, b]", ("a", "b")),
        ("test: [CMD-SHELL, a b]", ("/bin/sh", "-c", "a b")),
        ("test: [CMD-SHELL, a $$0, b]", ("/bin/sh", "-c", "a $0", "b")),
        ("test: [NONE]", None),
        ("disable: true", None),
    ],
)
def test_health_checks(tmp_path: Path, text: str, expected: tuple[str, ...] | None) -> None:
    """Each form of a test is read; a check that is turned off is none."""
    check = only(load(tmp_path, f"services: {{a: {{image: x, healthcheck: {{{text}}}}}}}")).healthcheck
    assert (tuple(check.action.command) if check else None) == expected


def test_health_check_times(tmp_path: Path) -> None:
    """Times are seconds, and Compose's defaults hold; steersman.yaml also has http and tcp."""
    text = (
        "{a: {command: x, healthcheck: {http: 'http://localhost/', interval: 1s500ms, retries: 5, start_period: 1m}}}"
    )
    check = only(load(tmp_path, f"services: {text}")).healthcheck
    assert check is not None
    assert (check.action.url, check.interval, check.timeout, check.retries, check.start_period) == (
        *("http://localhost/", 1.5, 30.0),
        *(5, 60.0),
    )
    check = only(load(tmp_path, "services: {a: {command: x, healthcheck: {tcp: 80}}}")).healthcheck
    assert check is not None
    assert (check.action, check.interval, check.retries) == (TcpProbe(port=80), 30.0, 3)


def test_paths_of_a_process(tmp_path: Path) -> None:
    """The working folder is absolute; globs inside of it are relative to it, others are absolute."""
    text = """
services:
  a:
    command: x
    working_dir: app
    watch: {paths: [app/**/*.py, lib], ignore: app/x, debounce: 1s}
    develop: {watch: [{path: ./app, action: restart, ignore: [node_modules/]}]}
"""
    service = only(load(tmp_path, text))
    assert service.working_folder == str(tmp_path / "app")
    assert [(each.paths, each.ignore, each.debounce) for each in service.watch] == [
        (("**/*.py", f"{tmp_path}/lib"), ("x",), 1.0),
        (("**",), ("**/node_modules",), 0.5),
    ]
