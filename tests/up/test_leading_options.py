"""``-p`` and ``-f`` before the command, as users of ``docker compose`` write them."""

import json
from pathlib import Path

import pytest
from up.test_up import Place

from steersman.cli import main

WEB = "services: {web: {command: sleep 1000}}"


@pytest.fixture
async def place(tmp_path: Path):
    made = Place(tmp_path / "folder", tmp_path / "state")
    made.write(WEB, "other.yaml")
    yield made
    for project in ("up", "x"):
        await (await made.begin("-p", project, "-f", "other.yaml", "down")).communicate()


async def test_a_project_before_the_command_is_that_of_every_command(place: Place):
    """A name that is a command, too, must not confuse the process of a detached session."""
    leading = ("-p", "up", "-f", "other.yaml")
    assert "up: 1 service from other.yaml" in await place.run(*leading, "up", "-d")
    (row,) = json.loads(await place.run(*leading, "ps", "--json"))
    assert (row["name"], row["state"]) == ("web", "running")
    assert await place.run("ps", "-p", "x", "--json") == "[]\n"
    assert "web: stopped" in await place.run("--project-name", "up", "stop", "web")
    assert await place.run("-p", "up", "logs") == ""
    assert await place.run("-p", "up", "run", "-f", "other.yaml", "web", "--", "echo", "once") == "once\n"
    assert "up: stopped" in await place.run(*leading, "down")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "a", "up", "-p", "b"), "-p a before up and -p b after it name two projects: remove one"),
        (("-p", "a", "serve"), "serve does not take -p a: only the commands for applications do"),
        (("-p", "", "new", "x"), "new does not take -p '': only the commands for applications do"),
        (("-f", "a.yaml", "new", "x"), "new does not take -f a.yaml: only the commands for applications do"),
        (("-p", "a", "run", "module:manager"), "no service module:manager in the application here: -f and -p need a"),
    ],
)
def test_a_conflict_is_named(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_files_before_and_after_the_command_are_merged_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for number in "12":
        (tmp_path / f"{number}.yaml").write_text(f"name: n{number}\n{WEB}")
    assert main(["-f", str(tmp_path / "1.yaml"), "convert", "-f", str(tmp_path / "2.yaml"), "--format", "json"]) == 0
    labels = {
        each["metadata"]["labels"]["steersman.dev/project"] for each in json.loads(capsys.readouterr().out)["items"]
    }
    assert labels == {"n2"}
