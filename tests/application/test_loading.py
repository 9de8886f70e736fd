"""What files declare becomes the application: services, resources, objects, names, precedence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from application.samples import load, only, problems

from steersman.application import is_edited, load_application
from steersman.cli.up.summary import start_summary
from steersman.workloads.files import matches


def test_a_simple_file(tmp_path: Path) -> None:
    """A process with a port, a variable and a dependency is read as it is written."""
    application = load(
        tmp_path,
        {
            "steersman.yaml": """
name: shop
collector: db
services:
  web:
    command: python -m http.server --bind '127.0.0.1' 8080
    ports: ["8080:8080"]
    environment: {DEBUG: true, LEVEL: 3, HOME: }
    depends_on: [db]
    watch: src/**/*.py
  db:
    image: postgres:17
"""
        },
    )
    assert application.name == "shop"
    assert application.collector == "db"
    assert list(application.services) == ["web", "db"]
    web = application.services["web"]
    assert web.is_process
    assert web.command == ("python", "-m", "http.server", "--bind", "127.0.0.1", "8080")
    assert web.environment == {"DEBUG": "true", "LEVEL": "3", "HOME": "/home/user"}
    assert [(port.published, port.target, port.host_address) for port in web.ports] == [(8080, 8080, None)]
    assert [depends.service for depends in web.depends_on] == ["db"]
    assert web.working_folder == str(tmp_path)
    assert web.watch[0].paths == ("src/**/*.py",)
    assert (web.place.line, web.place.column) == (5, 3)
    assert not application.services["db"].is_process
    assert application.networks["default"].name == "shop_default"


@pytest.mark.parametrize("name", ["steersman.yaml", "compose.yml", "docker-compose.yaml", "Procfile"])
def test_a_file_is_found_from_a_folder_below(tmp_path: Path, name: str) -> None:
    """A command works in every folder of a project."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    text = "web: run" if name == "Procfile" else "services: {web: {command: run}}"
    (tmp_path / name).write_text(text, encoding="utf-8")
    application = load_application(tmp_path / "src" / "deep", environment={})
    assert list(application.services) == ["web"]
    assert application.folder == tmp_path


def test_the_nearest_folder_and_its_best_file_win(tmp_path: Path) -> None:
    """steersman.yaml comes before Compose's names, and these before a Procfile."""
    files = {"steersman.yaml": "services: {own: {command: x}}", "compose.yaml": "services: {other: {command: x}}"}
    assert list(load(tmp_path, files).services) == ["own"]
    (tmp_path / "steersman.yaml").unlink()
    assert list(load(tmp_path, {"Procfile": "web: x"}).services) == ["other"]
    assert list(load(tmp_path, {"below/Procfile": "web: x"}, files=[Path("below/Procfile")]).services) == ["web"]


def test_no_file(tmp_path: Path) -> None:
    """The error says what was looked for."""
    assert "no steersman.yaml, compose.yaml or Procfile in" in problems(tmp_path, {})


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"name": "given"}, "name: file", "given"),
        ({"environment": {"COMPOSE_PROJECT_NAME": "shell"}}, "name: file", "shell"),
        ({}, "name: file", "file"),
        ({"environment": {"X": "y"}}, "name: ${X}-z", "y-z"),
        ({}, "", "my_shop"),
    ],
)
def test_the_name_of_the_project(tmp_path: Path, options: dict[str, object], text: str, expected: str) -> None:
    """The precedence is that of Compose; the folder's name is the last resort, and variables may use the name."""
    folder = tmp_path / "My_Shop!"
    folder.mkdir()
    application = load(folder, f"{text}\nservices: {{a: {{command: 'x $COMPOSE_PROJECT_NAME'}}}}", **options)
    assert application.name == expected
    assert only(application).command == ("x", expected)


def test_a_variable_that_is_not_utf_8(tmp_path: Path) -> None:
    """As in Docker, a replacement character stands for each other byte. No object could contain the value as it is."""
    application = load(tmp_path, "services: {a: {command: 'x $CAFE'}}", environment={"CAFE": "caf\udce9"})
    assert only(application).command == ("x", "caf\ufffd")


def test_a_wrong_name_of_the_project(tmp_path: Path) -> None:
    """A given name is never changed silently."""
    assert "the project name 'Shop' must consist of lowercase" in problems(
        tmp_path, "name: Shop\nservices: {a: {command: x}}"
    )


def test_precedence_of_variables(tmp_path: Path) -> None:
    """The shell wins over .env of the folder, and that over .env beside the file; --env-file takes their place."""
    files = {
        "compose.yaml": "services: {a: {image: '$A-$B-$C', environment: [B]}}",
        ".env": "A=file\nB=file\nC=file\n",
        "below/.env": "A=folder\nB=folder\n",
        "other.env": "A=other\nB=other\nC=other\n",
        "last.env": "B=last\nC=$A\n",
    }
    load(tmp_path, files)
    service = only(load_application(tmp_path / "below", environment={"A": "shell"}))
    assert service.image == "shell-folder-file"
    assert service.environment == {"B": "folder"}
    env_files = [tmp_path / "other.env", tmp_path / "last.env"]
    assert only(load_application(tmp_path, env_files=env_files, environment={})).image == "other-last-other"


def test_compose_file_and_profiles_of_the_environment(tmp_path: Path) -> None:
    """COMPOSE_FILE and COMPOSE_PROFILES count, also from .env."""
    files = {
        ".env": "COMPOSE_FILE=one.yaml:two.yaml\nCOMPOSE_PROFILES=a,b\n",
        "one.yaml": "services: {a: {image: x}}",
        "two.yaml": "services: {a: {image: y}, b: {image: z}}",
    }
    application = load(tmp_path, files)
    assert [service.image for service in application.services.values()] == ["y", "z"]
    assert application.profiles == ("a", "b")
    assert application.files == tuple(tmp_path / name for name in (".env", "one.yaml", "two.yaml"))


@pytest.mark.parametrize("made", [".env", "steersman.override.yml", "steersman.override.yaml", "late/a.env", "b/.env"])
def test_a_file_that_may_be_made_later_counts_as_one_of_the_application(tmp_path: Path, made: str) -> None:
    """The session of `up` watches the files of an application: it must see when an optional one is made."""
    text = "include: [b/b.yaml]\nservices: {a: {command: x, env_file: [{path: late/a.env, required: false}]}}"
    application = load(tmp_path, {"steersman.yaml": text, "b/b.yaml": "services: {b: {command: x}}"})
    assert not is_edited(application)
    assert tmp_path / made in application.files
    assert next(start_summary(application)).endswith("from steersman.yaml, b.yaml")
    (tmp_path / "late").mkdir()
    (tmp_path / made).write_text("")
    assert is_edited(application)


def test_an_optional_file_whose_name_is_too_long(tmp_path: Path) -> None:
    """A file that cannot exist is an error with its place, also where the file may be missing."""
    text = f"services:\n  a:\n    command: x\n    env_file: [{{path: {'a' * 300}, required: false}}]\n"
    assert "steersman.yaml:4:23: cannot read" in problems(tmp_path, text)


@pytest.mark.parametrize(
    ("service", "name", "matched"),
    [
        ("{command: x, watch: 'src/*.[cp]*'}", "src/a.py", "src/a.py"),
        ("{command: x, working_dir: api, watch: 'src/*.[cp]*'}", "src/a.py", "FOLDER/src/a.py"),
        ("{command: x, working_dir: .., watch: 'src'}", "src/a.py", "app[1]/src/a.py"),
        ("{image: x, watch: 'src/*.py'}", "src/a.py", "FOLDER/src/a.py"),
        (
            "{image: x, develop: {watch: [{path: 'src/[slug]', action: restart}]}}",
            "src/[slug]/a",
            "FOLDER/src/[slug]/a",
        ),
        (
            "{image: x, develop: {watch: [{path: 'src/[slug]', action: restart, include: ['*.p?']}]}}",
            "src/[slug]/a.py",
            "FOLDER/src/[slug]/a.py",
        ),
    ],
)
def test_a_folder_whose_name_looks_like_a_glob(tmp_path: Path, service: str, name: str, matched: str) -> None:
    """Only what the file writes in watch is a glob: neither the project's folder nor the path of develop.watch."""
    folder = tmp_path / "app[1]"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("")
    [watch] = only(load(folder, f"services: {{a: {service}}}")).watch
    assert matches(matched.replace("FOLDER", str(folder)), watch.paths, watch.ignore)


def test_kubernetes_objects(tmp_path: Path) -> None:
    """Documents with apiVersion and kind are kept as they are written, in the file and in files that it names."""
    files = {
        "steersman.yaml": """
objects: [k8s/*.yaml]
services: {a: {command: x}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: "$HOME ${X", b: "1"}
""",
        "k8s/a.yaml": "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: two}\nspec: {n: 010, on: yes, f: 1.5, t: 22:22}\n",
        "k8s/b.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: three}}\n",
    }
    application = load(tmp_path, files)
    assert [item["metadata"]["name"] for item in application.objects] == ["one", "two", "three"]
    assert application.objects[0]["data"] == {"a": "$HOME ${X", "b": "1"}
    assert application.objects[1]["spec"] == {"n": 8, "on": True, "f": 1.5, "t": "22:22"}
    assert tmp_path / "k8s/a.yaml" in application.files
    found = problems(tmp_path, {**files, "k8s/a.yaml": "apiVersion: v1\nkind: Pod\n---\na: 1\n"})
    assert "a.yaml:1:1: the object of kind 'Pod' needs metadata.name" in found
    assert "a.yaml:4:1: a document under objects needs apiVersion and kind" in found


def test_resources(tmp_path: Path) -> None:
    """Networks and volumes are named after the project; secrets and configs have one source."""
    text = """
services:
  a:
    image: x
    networks: {back: {aliases: [db]}, default: }
    secrets: [token, {source: key, target: k.pem, mode: 0440, uid: "1"}]
    configs: [settings, {source: inline, target: /etc/x}]
networks: {back: {internal: true}, outer: {external: true}, named: {name: other}}
volumes: {data: , outer: {external: true, name: pool}}
secrets: {token: {environment: TOKEN}, key: {file: ./key.pem}}
configs: {settings: {file: settings.ini}, inline: {content: "a=$TOKEN"}}
"""
    application = load(tmp_path, text, environment={"TOKEN": "s"}, name="p")
    service = only(application)
    assert [(use.name, use.aliases) for use in service.networks or ()] == [("back", ("db",)), ("default", ())]
    names = {key: (each.name, each.external) for key, each in application.networks.items()}
    assert names == {
        "back": ("p_back", False),
        "outer": ("outer", True),
        "named": ("other", False),
        "default": ("p_default", False),
    }
    assert application.networks["back"].internal
    assert {key: each.name for key, each in application.volumes.items()} == {"data": "p_data", "outer": "pool"}
    assert [(each.target, each.mode, each.user) for each in service.secrets] == [
        ("/run/secrets/token", None, None),
        ("/run/secrets/k.pem", 0o440, "1"),
    ]
    assert [each.target for each in service.configs] == ["/settings", "/etc/x"]
    assert application.secrets["token"].content == "s"
    assert application.secrets["key"].file == tmp_path / "key.pem"
    assert application.configs["inline"].content == "a=s"


def test_a_container_in_full(tmp_path: Path) -> None:
    """Keys of Compose without a field of their own become arguments of the container runtime."""
    text = """
services:
  a:
    build: {context: ./app, dockerfile: D, args: {A: 1, HOME: }, target: dev, platforms: [linux/amd64]}
    entrypoint: ["/init"]
    command: ""
    container_name: c
    hostname: h
    network_mode: host
    cap_add: [NET_ADMIN]
    devices: ["/dev/a:/dev/b"]
    extra_hosts: ["x:1.2.3.4", "y=::1"]
    mem_limit: 1.5g
    sysctls: [a.b=1]
    ulimits: {nofile: {soft: 1, hard: 2}, nproc: 5}
    init: true
    tmpfs: /run
    dns: 8.8.8.8
    deploy: {resources: {limits: {cpus: "0.5", memory: 50M}}, replicas: 1, restart_policy: {condition: any}}
    healthcheck: {disable: true}
"""
    service = only(load(tmp_path, {"compose.yaml": text}))
    assert service.build is not None
    assert msgspec.structs.asdict(service.build) | {"labels": 0, "tags": 0, "secrets": 0} == {
        "context": f"{tmp_path}/app", "dockerfile": "D", "dockerfile_inline": None, "labels": 0, "tags": 0, "secrets": 0,
        "args": {"A": "1", "HOME": "/home/user"}, "target": "dev", "platform": "linux/amd64",
    }  # fmt: skip
    assert (service.entrypoint, service.command) == (("/init",), ())
    assert (service.networks, service.network_mode) == ((), "host")
    assert service.restart.policy == "always"
    assert [mount.type for mount in service.volumes] == ["tmpfs"]
    arguments = " ".join(service.run_arguments)
    for expected in (
        "--cap-add NET_ADMIN", "--device /dev/a:/dev/b", "--add-host x:1.2.3.4", "--add-host y:::1", "--sysctl a.b=1",
        "--memory 1610612736b", "--ulimit nofile=1:2", "--ulimit nproc=5", "--init", "--dns 8.8.8.8", "--cpus 0.5",
        "--memory 52428800b", "--no-healthcheck",
    ):  # fmt: skip
        assert expected in arguments


def test_the_release_process_of_a_procfile_completes_before_the_others_start(tmp_path: Path) -> None:
    """It takes no port."""
    application = load(tmp_path, {"Procfile": "release: migrate\nweb: serve\nworker: work\n"})
    release, web, worker = application.services.values()
    assert (release.depends_on, "PORT" in release.environment) == ((), False)
    assert web.ports[0].published == 5000
    assert worker.environment["PORT"] == "5100"
    for service in (web, worker):
        assert [(each.service, each.condition) for each in service.depends_on] == [
            ("release", "service_completed_successfully")
        ]


def test_a_procfile(tmp_path: Path) -> None:
    """Each line is a process with its own PORT, that of web by its port; .env is a part of the environment and wins over the shell."""
    files = {"Procfile": "# c\nweb: python app.py $PORT\n\nworker: w | cat\nno line\n", ".env": "A=1\n"}
    application = load(tmp_path, files, environment={"A": "shell"})
    assert {name: service.environment for name, service in application.services.items()} == {
        "web": {"A": "1"},
        "worker": {"A": "1", "PORT": "5100"},
    }
    web, worker = application.services.values()
    assert web.command == ("/bin/sh", "-c", "python app.py $PORT")
    assert [(port.published, port.target) for port in web.ports] == [(5000, 5000)]
    assert worker.ports == ()
    assert "Procfile:5:1: ignored a line" in str(application.warnings[0])
    assert "Procfile:2:1: the process a is already declared on line 1" in problems(tmp_path, {"Procfile": "a: x\na: y"})
