"""``tools/test``: a room's tests all run, those above it while time allows, and no folder of tests is out of reach."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from samples.durations import UNKNOWN, measured, seconds_of, waits, write_table

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "test"

tool = runpy.run_path(str(TOOL), run_name="room_tests")
Selection, Plan, plan, touched, named = (tool[name] for name in ("Selection", "Plan", "plan", "touched", "named"))

#: A small house: paint imports wood, door imports paint, and window imports nothing.
IMPORTED_BY = {"wood": ["paint"], "paint": ["door"]}
ROOMS = ["door", "paint", "wood", "window"]
FILES = {
    room: [f"tests/{room}/test_{number}.py" for number in range(3)]
    for room in ("wood", "paint", "door", "window", "house")
}


def seconds(file: str) -> float:
    """The third file of each folder is dear."""
    return 10.0 if file.endswith("_2.py") else 1.0


def planned(*rooms: str, budget: float) -> Plan:
    before = tool["START"] + tool["COLLECTION"] * sum(len(files) for files in FILES.values())
    return plan(Selection(rooms), FILES, IMPORTED_BY, budget=before + budget, seconds=seconds)


# --- the tables of the tool


def test_every_room_has_tests_of_its_own() -> None:
    """A room without tests would pass whatever was done to it."""
    files = tool["test_files"]()
    assert [room for room in tool["rooms"]() if not all(files.get(each) for each in tool["own_folders"](room))] == []


def test_every_folder_of_tests_is_reached_from_a_room() -> None:
    """Tests that no room leads to would run in CI alone."""
    reached = set(tool["distances"](tool["rooms"](), {}))
    assert set(tool["test_files"]()) - reached == set()


def test_the_tables_name_rooms_and_folders() -> None:
    """A renamed room or folder is renamed here too."""
    rooms, folders = set(tool["rooms"]()), set(tool["test_files"]())
    for entries in (tool["OWN"], tool["EXERCISED_BY"]):
        assert set(entries) <= rooms
        assert {folder for named in entries.values() for folder in named} <= folders
    assert {tool["HOUSE"], *tool["OUTSIDE"].values()} <= folders


def test_importers_follow_the_code() -> None:
    imported_by = tool["importers"](tool["rooms"]())
    assert "controller" in imported_by["cache"]
    assert "apiserver" not in imported_by["cache"]
    assert imported_by["client"] <= set(tool["rooms"]())


# --- the plan


def test_the_own_tests_run_whatever_they_take() -> None:
    chosen = planned("wood", budget=1)
    assert chosen.own == FILES["wood"]
    assert chosen.above == []
    assert set(chosen.left_out) == {*FILES["paint"], *FILES["door"], *FILES["house"]}


def test_all_that_imports_a_room_runs_if_time_allows() -> None:
    """And what does not import it, directly or indirectly, never does."""
    chosen = planned("wood", budget=1_000)
    assert set(chosen.above) == {*FILES["paint"], *FILES["door"], *FILES["house"]}
    assert chosen.left_out == []
    assert planned("paint", budget=1_000).own == FILES["paint"]
    assert set(planned("paint", budget=1_000).above) == {*FILES["door"], *FILES["house"]}


def test_cheap_and_near_files_come_first() -> None:
    """Two workers take 9 seconds for the own files and the cheap ones, and 5 more for each dear one."""
    cheap = [file for room in ("house", "paint", "door") for file in FILES[room][:2]]
    dear = [FILES[room][2] for room in ("house", "paint", "door")]
    assert planned("wood", budget=12).above == cheap
    assert planned("wood", budget=15).above == [*cheap, dear[0]]
    assert planned("wood", budget=20).above == [*cheap, *dear[:2]]
    assert planned("wood", budget=25).above == [*cheap, *dear]


def test_a_run_is_as_long_as_its_longest_work_unit() -> None:
    """A second worker does not shorten a room that stays in one."""

    def taken(folder: str) -> float:
        files = [f"tests/{folder}/test_{number}.py" for number in range(4)]
        return tool["duration"](files, lambda _: 10.0) - tool["duration"](files, lambda _: 0.0)

    assert taken("conformance") == pytest.approx(40.0)
    assert taken("aio") == pytest.approx(20.0)


def test_the_tests_of_two_rooms_run_once() -> None:
    chosen = planned("wood", "paint", budget=1_000)
    assert chosen.own == [*FILES["wood"], *FILES["paint"]]
    assert set(chosen.above) == {*FILES["door"], *FILES["house"]}


# --- what changed


def test_paths_lead_to_rooms_folders_and_test_files() -> None:
    paths = [
        "src/steersman/wood/plank.py",
        "src/steersman/wood/__init__.py",
        "tests/door/test_0.py",
        "tests/door/test_gone.py",
        "tests/window/glass.py",
        "tests/conftest.py",
        "src/steersman/_version.py",
        "CHANGELOG.md",
    ]
    found = touched(paths, ROOMS, FILES)
    assert found.rooms == ["wood"]
    assert found.files == ["tests/door/test_0.py"]
    assert found.folders == ["window"]
    assert found.rest == ["tests/conftest.py", "src/steersman/_version.py"]


def test_documents_alone_lead_to_the_tests_of_the_house() -> None:
    assert touched(["docs/testing.md", "tools/setup"], ROOMS, FILES) == Selection([], ["house"], [], [])


def test_a_change_is_what_differs_from_the_last_commit_or_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tool["git"].__globals__, "ROOT", tmp_path)

    def commit(name: str) -> None:
        (tmp_path / name).touch()
        person = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        tool["git"]("add", "--all")
        tool["git"](*person, "commit", "--quiet", "-m", name)

    tool["git"]("init", "--quiet")
    commit("one")
    commit("two")
    assert tool["changed_paths"]() == ["two"]
    (tmp_path / "one").write_text("changed", encoding="utf-8")
    (tmp_path / "three").touch()
    assert tool["changed_paths"]() == ["one", "three"]


@pytest.mark.parametrize(
    "word", ["wood", "src/steersman/wood/", "/far/src/steersman/wood/plank.py", "steersman.wood", "tests/wood"]
)
def test_a_path_names_its_room(word: str) -> None:
    assert named([word], ROOMS, FILES) == Selection(["wood"], [])


def test_a_folder_of_tests_can_be_named() -> None:
    assert named(["house"], ROOMS, FILES) == Selection([], ["house"])


def test_an_unknown_room_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(SystemExit) as caught:
        named(["wod"], ROOMS, FILES)
    assert str(caught.value) == (
        "tools/test: there is no room 'wod': did you mean wood?\nrooms: door, paint, window, wood"
    )


def test_arguments_from_the_first_foreign_option_on_are_those_of_pytest() -> None:
    options, others = tool["parsed"](["cache", "--minutes", "1", "client", "-k", "embedded", "--all"])
    assert (options.room, options.minutes, options.all) == (["cache", "client"], 1.0, False)
    assert others == ["-k", "embedded", "--all"]


# --- the words


def test_the_output_says_what_is_left_out_and_how_to_run_it() -> None:
    files = {"wood": ["tests/wood/test_0.py"], "door": ["tests/door/test_0.py", "tests/door/test_1.py"]}
    chosen = Plan(files["wood"], files["door"][:1], files["door"][1:])
    own, above, left_out = tool["described"](chosen, files, 180)
    assert own.startswith("wood: about ")
    assert above.endswith(": door 1 of 2")
    assert "left out 1 files: door 1 of 2; --all runs them too" in left_out


def test_the_output_says_that_a_room_is_larger_than_the_time() -> None:
    [line] = tool["described"](Plan(["tests/wood/test_0.py"]), {"wood": ["tests/wood/test_0.py"]}, 1)
    assert line.startswith("wood: alone about ")


def run(
    *arguments: str, cwd: Path, python: str = sys.executable, script: Path = TOOL
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, str(script), *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=100
    )


def test_it_runs_from_any_directory_and_ends_as_pytest_ends(tmp_path: Path) -> None:
    """Status 5 is pytest's own: it found the files, and no test of that name."""
    options = ("-p", "no:cacheprovider", "-n", "0", "-k", "no_test_has_this_name")
    answer = run("errors", "--minutes", "0", *options, cwd=tmp_path)
    assert answer.returncode == 5, answer.stdout + answer.stderr
    assert "deselected" in answer.stdout.splitlines()[-1]


def test_a_missing_engine_is_named_where_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USE_EXISTING_CLUSTER", "TEST_ASSET_KUBE_APISERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    files = tool["test_files"]()
    assert "run tools/engine/build" in tool["missing_engine"](files["guarantees"])
    assert tool["missing_engine"](files["aio"]) == ""
    (tmp_path / "kube-apiserver").touch(0o755)
    assert tool["missing_engine"](files["guarantees"]) == ""


def test_a_static_check_that_fails_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(tool["static_checks"].__globals__, "ROOT", tmp_path)
    module = tmp_path / "src" / "steersman" / "wood" / "plank.py"
    module.parent.mkdir(parents=True)
    module.write_text("import os\n", encoding="utf-8")
    assert "ruff check" in tool["static_checks"](Selection(["wood"]))
    assert "plank.py" in capsys.readouterr().out


def test_a_list_names_every_room(tmp_path: Path) -> None:
    listed = [line.split()[0] for line in run("--list", cwd=tmp_path).stdout.splitlines()[1:]]
    assert listed == tool["rooms"]()


def test_without_an_environment_it_says_how_to_make_one(tmp_path: Path) -> None:
    """A copy of the tool belongs to a checkout without an environment."""
    copy = tmp_path / "tools" / "test"
    copy.parent.mkdir()
    shutil.copy(TOOL, copy)
    answer = run("cache", cwd=tmp_path, script=copy)
    assert answer.returncode == 1
    assert answer.stderr == f"tools/test: {tmp_path / '.venv'} is missing or incomplete: run tools/setup\n"


# --- the table of durations


def test_durations_are_those_of_files_without_the_engine(tmp_path: Path) -> None:
    """The first file of a worker would else pay for the engine of all, and any file for the load of its machine."""
    records = [
        {"fixture": "engine", "scope": "session", "node": "", "wall": 9.0, "cpu": 1.0},
        {"test": "tests/a/test_a.py::test_one", "wall": 11.0, "cpu": 0.5, "below": 0.0, "queued": 1.0},
        {"fixture": "site", "scope": "module", "node": "tests/a", "wall": 3.0, "cpu": 1.0},
        {"test": "tests/a/test_a.py::test_two[x::y]", "wall": 4.04, "cpu": 1.0, "below": 2.0, "queued": 0.0},
        {"test": "tests/a/test_b.py::test_one", "wall": 0.01, "cpu": 0.01, "below": 0.0, "queued": 0.0},
    ]
    (tmp_path / "gw0.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    (tmp_path / "gw1.jsonl").write_text(json.dumps(records[1]) + "\n", encoding="utf-8")
    assert measured(tmp_path) == {"tests/a/test_a.py": (15.0, 4.0), "tests/a/test_b.py": (0.1, 0.1)}


def test_a_new_measurement_keeps_what_it_did_not_run(tmp_path: Path) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    written = tmp_path / "durations.json"
    write_table({"old.py": (1.0, 0.5), "gone.py": (2.0, 2.0)}, tmp_path, written)
    write_table({"new.py": (3.0, 0.1)}, tmp_path, written)
    assert json.loads(written.read_text(encoding="utf-8")) == {"new.py": [3.0, 0.1], "old.py": [1.0, 0.5]}


def test_a_file_that_was_not_measured_has_a_duration() -> None:
    assert (seconds_of("tests/none/test_none.py"), waits(["tests/none/test_none.py"])) == (UNKNOWN[0], False)


def test_a_file_waits_if_it_hardly_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker beyond the cores must not take a test that computes."""
    monkeypatch.setattr("samples.durations.table", lambda: {"a.py": (10.0, 1.0), "b.py": (10.0, 9.0)})
    assert (waits(["a.py"]), waits(["b.py"]), waits(["a.py", "b.py"])) == (True, False, False)
