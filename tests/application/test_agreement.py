"""The objects of Compose files mean what Compose's own library reads in them, for one file of each family of features."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from application import meaning

from bench.contenders.preparing import go_program
from steersman.application import application_objects, load_application, select_services
from steersman.objects import tree_of

FOLDERS = sorted(each for each in (Path(__file__).parent / "compose").iterdir() if each.is_dir())


@pytest.fixture(scope="module")
def projects():
    """The projects as the library of ``docker compose config`` reads them, by the name of the folder."""
    program = go_program(Path(__file__).parent / "compose_go", "compose_go")
    command = [str(program), *map(str, FOLDERS)]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment).stdout
    return {Path(folder).name: project for folder, project in json.loads(printed).items()}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_objects_mean_what_compose_reads(projects, folder):
    project = projects[folder.name]
    assert not isinstance(project, str), project
    application = select_services(load_application(folder, environment={"HOME": os.environ.get("HOME", "/")}))
    assert application.name == project["name"]
    expected = meaning.of_compose(project)
    found = meaning.of_objects(map(tree_of, application_objects(application, project=application.name)))
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name
