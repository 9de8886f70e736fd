"""Mistakes are reported with file, line, column and the nearest name; hostile files end in an error."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time  # noqa: TID251 - the CPU time of a computation is bounded
from typing import Any

import pytest
from application.samples import load, problems

#: Each of these files takes milliseconds, a few of them a second.
SECONDS_MAX = 15.0


@contextmanager
def bounded_time() -> Iterator[None]:
    """Fail if the block takes much CPU time."""
    began = process_time()
    yield
    assert process_time() - began < SECONDS_MAX


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("service: {}", "1:1: the file has no key 'service'; did you mean services?"),
        ("services: {a: {comand: x}}", "1:16: the service a has no key 'comand'; did you mean command?"),
        ("services: {a: {command: x, working_directory: y}}", "did you mean working_dir?"),
        ("services: {a: {}}", "1:12: the service a needs a command: without image or build it is a process"),
        ("services: {a: {command: ''}}", "1:12: the service a needs a command"),
        ("services: {a: }", "1:12: the service a needs a command"),
        ("services: [a]", "1:11: services must be a mapping, not a list"),
        ("services: {a: x}", "1:15: the service a must be a mapping, not a scalar"),
        ("services: {}", "the file declares no services"),
        ("", "the file declares no services"),
        ("- a", "1:1: the file must be a mapping, not a list"),
        ("services: {a b: {command: x}}", "a service name must consist of letters, digits"),
        ("services: {a: {command: x, restart: sometimes}}", "1:37: restart must be one of no, always"),
        ("services: {a: {command: x, restart: always:3}}", "or on-failure:N, not 'always:3'"),
        ("services: {a: {command: x, stop_grace_period: soon}}", "stop_grace_period must be a duration"),
        ("services: {a: {command: x, scale: -1}}", "scale must be a number from 0 to 1000, not '-1'"),
        ("services: {a: {command: x, scale: 2, deploy: {replicas: 3}}}", "replicas is 3, but scale is 2"),
        ("services: {a: {image: x, container_name: y, scale: 2}}", "allows only one container"),
        ("services: {a: {command: x, tty: maybe}}", "tty must be true or false, not 'maybe'"),
        ("services: {a: {command: \"x 'y\"}}", "command: the ' at character 3 is not closed"),
        ("services: {a: {command: [x, [y]]}}", "an item of command must be a string, not a list"),
        ("services: {a: {command: [x], shell: true}}", "shell: true needs command as one string"),
        ("services: {a: {command: x, depends_on: [bb]}, b: {command: x}}", "a depends on 'bb', which is not declared"),
        ("services: {a: {command: x, depends_on: {a: {condition: healthy}}}}", "condition must be one of service_started"),
        (
            "services: {a: {command: x, depends_on: {b: {condition: service_healthy}}}, b: {command: x}}",
            "1:41: a waits until b is healthy, but b has no healthcheck",
        ),
        ("services: {a: {command: x, healthcheck: {test: [x]}}}", "starts with CMD, CMD-SHELL or NONE"),
        ("services: {a: {command: ['', x]}}", ":1:25: the first word of the command of a is empty: it must be a program"),
        ("services: {a: {command: x, entrypoint: ['']}}", ":1:40: the first word of the command of a is empty"),
        ("services: {a: {command: x, healthcheck: {tcp: 1, http: 'http://x'}}}", "healthcheck has http and tcp"),
        ("services: {a: {command: x, healthcheck: {intervall: 1s}}}", "did you mean interval?"),
        ("services: {a: {image: x, volumes: ['dta:/x']}}\nvolumes: {data: }", "'dta' is not declared under volumes; did you mean data?"),
        ("services: {a: {image: x, networks: [b]}}", "the network 'b' is not declared under networks"),
        ("services: {a: {image: x, secrets: [b]}}", "the secret 'b' is not declared under secrets"),
        ("services: {a: {command: x}}\nsecrets: {s: {}}", "the secret s needs exactly one of file, environment, external"),
        ("services: {a: {command: x, environment: {A: [1]}}}", "environment: A must be a string"),
        ("services: {a: {command: x, command: y}}", "1:28: the key 'command' is already set on line 1"),
        ("services: {a: {command: !py x}}", "unknown tag '!py'; the supported tags are !reset and !override"),
        ("services: {a: {command: *x}}", "the alias *x has no anchor above it"),
        ("services: &x {a: *x}", "the alias *x is inside its own anchor"),
        ("services: {a: {<<: x, command: y}}", "<< can merge only mappings"),
        ("services: {[a]: b}", "a key must be a string"),
        ("services:\n\ta: b", "not valid YAML"),
        ("services: {a: {command: x, watch: {path: x}}}", "watch has no key 'path'; did you mean paths?"),
        ("collector: b\nservices: {a: {command: x}}", "1:12: collector: no service 'b'"),
        ("services: {a: {provider: {type: x}}}", "provider is not supported"),
        ("services: {a: {command: '${X:?is missing}'}}", "1:25: the variable X is required: is missing"),
        ("services: {a: {command: x, scale: '${X:?is missing}'}}", "1:35: the variable X is required: is missing"),
        ("services: {a: {command: x, ports: ['0:0']}}", "1:36: a port must be a number from 1 to 65535, not '0:0'"),
        ("services: {a: {command: x, healthcheck: {http: 'http://[::1'}}}", "1:48: http must be a URL with a host"),
        ("services: {a: {command: x, healthcheck: {http: 'http://a:99999/'}}}", "1:48: http must be a URL with a host"),
        ("services: {a: {command: x}}\n---\n{apiVersion: v1, kind: S, metadata: {name: x, labels: y}}", "3:1: metadata.labels of"),
        ("name: Shop!\nservices: {a: {command: x}}", "1:7: the project name 'Shop!' must consist of lowercase"),
        ("services: {a: {command: x, labels: {ok: y, 'a b': z}}}", "1:44: the label 'a b' cannot be an annotation"),
        ("services: {a: {command: x, labels: [ok=y, 'a b=z']}}", "1:43: the label 'a b' cannot be an annotation"),
        ("include: [none.yaml]\nservices: {a: {command: x}}", "/steersman.yaml:1:11: cannot read"),
        ("objects: [none.yaml]\nservices: {a: {command: x}}", "/steersman.yaml:1:11: cannot read"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, text: str, expected: str) -> None:
    """The message says where the mistake is, and what to write instead."""
    found = problems(tmp_path, text)
    assert f"{tmp_path}/steersman.yaml:" in found
    assert expected in found


def test_a_variable_with_a_mistake_has_no_other_one(tmp_path: Path) -> None:
    """The value is unknown, so nothing else can be said about it."""
    text = "services: {a: {command: '${X:?}', scale: '${X:?}', ports: ['${X:?}:1'], depends_on: ['${X:?}']}}"
    found = problems(tmp_path, text).splitlines()
    assert len(found) == 4
    assert all("the variable X is required" in each for each in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "services: {a: {image: x, watch: y}}",
            "1:26: watch is a key of steersman.yaml, not of the Compose specification",
        ),
        ("services: {a: {image: x, shell: true}}", "shell is a key of steersman.yaml"),
        ("objects: []\nservices: {a: {image: x}}", "the file has no key 'objects'"),
        ("services: {a: {image: x, healthcheck: {http: y}}}", "healthcheck has no key 'http'"),
        ("services: {a: {image: x, ports: [{published: 80}]}}", "a port needs a target"),
        ("services: {a: {image: x, mem: 1}}", "the service a has no key 'mem'"),
    ],
)
def test_a_compose_file_has_the_keys_of_compose_alone(tmp_path: Path, text: str, expected: str) -> None:
    """A file that other tools read stays a file that they can read."""
    assert expected in problems(tmp_path, {"compose.yaml": text})


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("extends: c", "1:25: steersman.yaml has no service 'c'"),
        ("extends: {service: c}", "1:25: steersman.yaml has no service 'c'"),
        ("extends: {file: none.yaml, service: c}", "1:32: cannot read"),
        ("extends: {file: x}", "1:25: extends needs a service"),
        ("extends: [c]", "1:25: extends must be a mapping"),
        ("extends: c, command: a && b, volumes: ['/a:/a']", "1:25: steersman.yaml has no service 'c'"),
        ("extends: a", "1:25: the services extend each other: a -> a"),
    ],
)
def test_a_service_with_a_mistake_in_extends_has_no_other_one(tmp_path: Path, service: str, expected: str) -> None:
    """The missing keys may be the command and the health check: messages about them would hide the cause."""
    text = f"services: {{a: {{{service}}}, b: {{command: x, depends_on: {{a: {{condition: service_healthy}}}}}}}}"
    (found,) = problems(tmp_path, text).splitlines()
    assert f"{tmp_path}/steersman.yaml:{expected}" in found


@pytest.mark.parametrize("named", [{"name": "Shop!"}, {"environment": {"COMPOSE_PROJECT_NAME": "Shop!"}}])
def test_a_project_name_of_the_command_line_has_no_place_in_a_file(tmp_path: Path, named: dict[str, Any]) -> None:
    assert problems(tmp_path, "services: {a: {command: x}}", **named).startswith("the project name 'Shop!' must")


@pytest.mark.parametrize("key", ["comand", "entripoint", "imag", "biuld"])
def test_a_misspelled_key_is_one_mistake(tmp_path: Path, key: str) -> None:
    """A second message that asks for a command would hide the cause."""
    (found,) = problems(tmp_path, f"services: {{a: {{{key}: x}}}}").splitlines()
    assert f"the service a has no key '{key}'; did you mean" in found


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """One run reports every mistake of every file, in the order of files and lines."""
    files = {
        "compose.yaml": "services:\n  a: {imag: x}\n  b:\n    image: y\n    restart: maybe\n    ports: [x]\n",
        "compose.override.yaml": "services:\n  b: {scale: many, enviroment: {}}\n",
    }
    assert [line.removeprefix(f"{tmp_path}/").split(": ")[0] for line in problems(tmp_path, files).splitlines()] == [
        *("compose.yaml:2:7", "compose.yaml:5:14", "compose.yaml:6:13"),
        *("compose.override.yaml:2:14", "compose.override.yaml:2:20"),
    ]


def test_keys_without_an_effect(tmp_path: Path) -> None:
    """One warning names them all with their lines; x-* and null are not among them."""
    text = """version: "3"
x-any: 1
services:
  a:
    command: x
    hostname: h
    volumes: [./x:/x]
    logging: {driver: x}
    init:
  b:
    image: x
    hostname: h
    x-own: 1
    logging: {driver: x}
    deploy: {mode: global}
"""
    [warning] = load(tmp_path, {"compose.yaml": text}).warnings
    assert str(warning) == (
        f"{tmp_path}/compose.yaml:1:1: keys without an effect here: version (compose.yaml:1), hostname (compose.yaml:6),"
        " volumes (compose.yaml:7), logging (compose.yaml:8, compose.yaml:14), mode (compose.yaml:15)"
    )


def test_an_invalid_pattern_of_objects(tmp_path: Path) -> None:
    """It is an error with its place, and no traceback. For Python 3.13 and later it is a pattern that matches nothing."""
    found = problems(tmp_path, "objects: ['k8s**.yaml']\nservices: {a: {command: x}}")
    assert "steersman.yaml:1:11: " in found
    assert "'k8s**.yaml'" in found


@pytest.mark.parametrize("watch", ["scr/**/*.py", "[scr, src]", "{paths: [src, scr/web.py]}", "'scr/*.[ch]'"])
def test_a_pattern_that_matches_no_file(tmp_path: Path, watch: str) -> None:
    """An edit would silently restart nothing."""
    (tmp_path / "src").mkdir()
    [warning] = load(tmp_path, f"services: {{a: {{command: x, watch: {watch}}}}}").warnings
    assert "watch: no file matches 'scr" in str(warning)
    assert str(warning).endswith(f"' in {tmp_path}")


@pytest.mark.parametrize("watch", ["src", "src/*.py", "'**/*.py'", "src/web.py", ".", "'src/we[a-c].py'"])
def test_a_pattern_that_matches_a_file(tmp_path: Path, watch: str) -> None:
    """A warning without a reason teaches users to ignore warnings."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "web.py").touch()
    assert load(tmp_path, f"services: {{a: {{command: x, watch: {watch}}}}}").warnings == ()


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "[work]"
    folder.mkdir()
    (folder / "web.py").touch()
    assert load(folder, "services: {a: {command: x, watch: '*.py'}}").warnings == ()


def test_a_pattern_that_no_file_can_match(tmp_path: Path) -> None:
    """It would fail only while the application runs."""
    assert "watch: 'src/[z-a].py' is not a pattern of files" in problems(
        tmp_path, "services: {a: {command: x, watch: 'src/[z-a].py'}}"
    )


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


def _merge_bomb() -> str:
    lines = ["a0: &a0 {x0: 1, y0: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}], x{n}: 1}}" for n in range(1, 30)]
    return "\n".join(lines)


def _dotenv_bomb() -> str:
    return "A0=xxxxxxxxxx\n" + "".join(f"A{n}={f'$A{n - 1}' * 10}\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[" * 100_000, "nested deeper than 50 levels"),
        (b"a: " + b"{b: " * 60 + b"}" * 60, "nested deeper than 50 levels"),
        (b"- " * 100_000, "nested deeper than 50 levels"),
        (_bomb().encode(), "values after its aliases are expanded"),
        (_merge_bomb().encode(), "values after its aliases are expanded"),
        (("x-a: &a " + "y" * 100_000 + "\nx-b: [" + "*a," * 1000 + "]").encode(), "characters after its aliases"),
        (b"a: 1\nb: \0\n", ":2:4: the file contains a NUL character"),
        (b"a: 1\nb: \xff\xfe\n", ":2:4: the file is not UTF-8 text"),
        ("services: {}".encode("utf-16"), "NUL character"),
        (b"x" * (5 * 1024 * 1024), "more than 4194304 bytes"),
        (b"services: {a: {user: '" + b"$" * 999_999 + b"{'}}\nx: 1", "has no closing brace"),
        (b"services: {a: {command: '" + b"${A:-" * 200_000 + b"'}}", "has no closing brace"),
        (b"services: {a: {command: '" + b"{{$(" * 30_000 + b"'}}", "is not closed"),
        (b"services: {a: {command: '" + b"{{" * 500_000 + b"'}}", "at most 131072 characters"),
        (b"services: {" + b"".join(b"a%d: {image: x}, " % n for n in range(5_000)) + b"}", "at most 1000 services"),
        (b"a: 1\n" * 40_000, "is already set on line 1"),
        (b"&" * 10_000, "not valid YAML"),
    ],
)  # fmt: skip
async def test_hostile_files(tmp_path: Path, data: bytes, expected: str) -> None:
    """No file makes the reader run for long, or use much memory, or crash."""
    (tmp_path / "steersman.yaml").write_bytes(data)
    with bounded_time():
        assert expected in problems(tmp_path, {})


async def test_a_hostile_dotenv_file(tmp_path: Path) -> None:
    """Variables of variables have a bounded size; many mistakes take a bounded time."""
    (tmp_path / ".env").write_text(_dotenv_bomb())
    assert "more than 8388608 characters in total" in problems(tmp_path, "services: {a: {command: x}}")
    (tmp_path / ".env").write_text("a b\n" * 500_000)
    with bounded_time():
        assert ".env:1:1: expected NAME=value" in problems(tmp_path, {})


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop"])
def test_files_that_are_no_files(tmp_path: Path, kind: str) -> None:
    """A pipe, a device, a folder or a loop of links ends in an error at once."""
    path = tmp_path / "x.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    for named in ({"files": [path]}, {}):
        text = "include: [x.yaml]\nservices: {a: {command: x}}"
        assert f"cannot read {path}: " in problems(tmp_path, text, **named)


def test_a_file_with_nothing_to_read_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel calls some of its files regular that behave like a pipe, such as /proc/kmsg; a pipe stands for one here."""
    path = tmp_path / "x.yaml"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
    try:
        assert f"cannot read {path}: " in problems(tmp_path, "include: [x.yaml]\nservices: {a: {command: x}}")
    finally:
        os.close(writer)


async def test_many_included_files(tmp_path: Path) -> None:
    """A tree of includes has a bounded number of files."""
    files = {f"f{n}.yaml": f"include: [f{n + 1}.yaml, ./x/../f{n + 1}.yaml, g{n}.yaml]" for n in range(30)}
    files |= {f"g{n}.yaml": f"include: [f{n + 1}.yaml, f{n + 1}.yaml]" for n in range(30)}
    assert "includes at most 200 files" in problems(
        tmp_path, {**files, "f30.yaml": "{}", "steersman.yaml": "include: [f0.yaml]"}
    )


def test_two_mounts_of_one_target_are_a_warning(tmp_path: Path) -> None:
    """The runtime rejects them; Compose takes the later one and says nothing."""
    mounts = "volumes: ['./a:/d', './c:/e', './b:/d'], secrets: [s, {source: t, target: s}]"
    text = f"services: {{a: {{image: x, {mounts}}}}}\nsecrets: {{s: {{file: s}}, t: {{file: t}}}}"
    (tmp_path / "s").write_text("")
    (tmp_path / "t").write_text("")
    application = load(tmp_path, {"compose.yaml": text})
    service = application.services["a"]
    assert [(each.source, each.target) for each in service.volumes] == [
        (f"{tmp_path}/b", "/d"),
        (f"{tmp_path}/c", "/e"),
    ]
    assert [(each.source, each.target) for each in service.secrets] == [("t", "/run/secrets/s")]
    assert [each.text for each in application.warnings] == [
        f"an earlier item has the target '{target}' too: this one replaces it, as in Compose"
        for target in ("/d", "/run/secrets/s")
    ]
