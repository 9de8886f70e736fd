"""``steersman convert``: what it prints, and what it hides."""

from __future__ import annotations

import json

import pytest
import yaml

from steersman.cli import main
from steersman.manifests import YamlDocuments

FILE = """\
name: shop
services:
  web:
    command: ./web --verbose
    environment: {LEVEL: debug, API_TOKEN: t0ken}
    ports: ["8080:3000"]
    depends_on: [db]
  db:
    image: docker.io/library/postgres:16
    environment: {POSTGRES_PASSWORD: hidden}
    configs: [settings]
  tool:
    command: ./tool
    profiles: [debug]
configs:
  settings:
    content: "key = hidden"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "steersman.yaml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def converted(capsys, *arguments):
    assert main(["convert", *arguments]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def names(documents):
    return [f"{each['kind']}/{each['metadata']['name']}" for each in documents]


@pytest.mark.usefixtures("folder")
def test_the_objects_are_printed_without_defaults(capsys):
    documents = converted(capsys)
    assert names(documents) == [
        "ContainerNetwork/default",
        "Service/web",
        "ExecutableReplicaSet/web",
        "Container/db",
    ]
    assert documents[1]["spec"] == {"port": 8080}
    assert documents[2]["spec"]["template"]["spec"]["args"] == ["--verbose"]


@pytest.mark.usefixtures("folder")
def test_secrets_are_masked_unless_they_are_asked_for(capsys):
    main(["convert"])
    shown = capsys.readouterr().out
    assert "hidden" not in shown
    assert "t0ken" not in shown
    assert "debug" in shown
    assert "********" in shown
    main(["convert", "--show-secrets"])
    assert capsys.readouterr().out.count("hidden") == 2


def test_a_string_stays_a_string_to_kubectl(folder, capsys):
    """Go's YAML takes more words for booleans and numbers than PyYAML does."""
    words = {"A": "y", "B": "1e3", "C": "0o7", "D": "0X1F", "E": "on", "F": "1_000"}
    file = {"name": "shop", "services": {"web": {"command": "./web", "environment": words}}}
    (folder / "steersman.yaml").write_text(json.dumps(file), encoding="utf-8")
    main(["convert"])
    ((shown, _),) = YamlDocuments(capsys.readouterr().out).documents
    environment = shown["spec"]["template"]["spec"]["env"]
    assert {each["name"]: each["value"] for each in environment} == words


@pytest.mark.usefixtures("folder")
def test_json_is_one_list(capsys):
    main(["convert", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "List"
    assert names(found["items"]) == names(converted(capsys))


@pytest.mark.usefixtures("folder")
def test_names_profiles_and_the_name_of_the_project(capsys):
    assert names(converted(capsys, "db")) == ["ContainerNetwork/default", "Container/db"]
    assert "ExecutableReplicaSet/tool" in names(converted(capsys, "--profile", "debug"))
    (network, *_) = converted(capsys, "-p", "other")
    assert network["spec"]["networkName"] == "other_default"


def test_another_file(folder, capsys):
    (folder / "other.yaml").write_text("services: {only: {command: ./only}}\n", encoding="utf-8")
    assert names(converted(capsys, "-f", "other.yaml")) == ["ExecutableReplicaSet/only"]


def test_mistakes_and_warnings_name_their_line(folder, capsys):
    (folder / "steersman.yaml").write_text("services:\n  web: {command: ./web, ports: ['1:2/udp']}\n", encoding="utf-8")
    assert main(["convert"]) == 1
    assert "steersman.yaml:2:" in capsys.readouterr().err
    (folder / "steersman.yaml").write_text("services:\n  web: {image: web, pull_policy: daily}\n", encoding="utf-8")
    assert main(["convert"]) == 0
    assert "warning: " in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_plain_secret_is_masked(folder, capsys):
    text = "kind: Secret\napiVersion: v1\nmetadata: {name: s}\nstringData: {password: hidden}\n"
    (folder / "steersman.yaml").write_text(f"services: {{web: {{command: ./web}}}}\n---\n{text}", encoding="utf-8")
    secret = converted(capsys)[0]
    assert secret["stringData"] == {"password": "********"}
    assert secret["metadata"]["labels"]["steersman.dev/project"]
