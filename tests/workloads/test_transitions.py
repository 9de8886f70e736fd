"""The tables of states: every transition that DCP allows is allowed, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from steersman.workloads.kinds import ContainerNetworkState, ContainerState, ContainerVolumeState, ExecutableState
from steersman.workloads.transitions import TRANSITIONS, IllegalTransition, check, is_final, state_diagram, steps

STATES = {
    "Executable": ExecutableState,
    "ContainerExec": ExecutableState,
    "Container": ContainerState,
    "ContainerNetwork": ContainerNetworkState,
    "ContainerVolume": ContainerVolumeState,
}


@pytest.mark.parametrize("kind", STATES)
def test_a_table_has_the_states_of_its_kind(kind):
    assert set(TRANSITIONS[kind]) == set(get_args(STATES[kind]))


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_a_transition_is_legal_only_if_the_table_has_it(kind):
    table = TRANSITIONS[kind]
    for old in table:
        for new in table:
            if old == new or new in table[old]:
                check(kind, old, new)
            else:
                with pytest.raises(IllegalTransition, match=f"^{kind} cannot go from '{old}' to '{new}'"):
                    check(kind, old, new)


def test_a_run_of_an_executable_never_begins_again():
    for final in ("Terminated", "FailedToStart", "Finished"):
        assert TRANSITIONS["Executable"][final] == {"Unknown"}
    assert is_final("Executable", "Unknown")


def test_a_build_is_never_stopping():
    """Building -> Stopping: a build is canceled or ends, and only a container that was found or started stops."""
    with pytest.raises(IllegalTransition, match="cannot go from 'Building' to 'Stopping'"):
        check("Container", "Building", "Stopping")


def test_an_unknown_state_is_named():
    with pytest.raises(IllegalTransition, match="Container has no state 'Sleeping'"):
        check("Container", "Running", "Sleeping")


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        ("", "Running", ["Running"]),
        ("", "Finished", ["Running", "Finished"]),
        ("Starting", "Terminated", ["Running", "Terminated"]),
        ("Running", "Running", []),
        ("Starting", "Unknown", ["Unknown"]),
    ],
)
def test_a_controller_that_missed_states_writes_each(old, new, way):
    assert steps("Executable", old, new) == way


def test_no_way_leads_out_of_a_final_state():
    with pytest.raises(IllegalTransition, match="cannot go from 'Finished' to 'Running'"):
        steps("Executable", "Finished", "Running")


PAGES = Path(__file__).parents[2] / "docs" / "workloads"


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_the_guide_draws_each_table(kind):
    """To write a diagram anew, copy what `state_diagram` returns."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md"))]
    drawn = [
        found
        for page in pages
        for found in re.findall(rf"<!-- states of {kind} -->\n```mermaid\n(.*?)```", page, re.DOTALL)
    ]
    assert drawn == [state_diagram(kind)]


def test_a_diagram_begins_and_ends_where_the_table_does():
    assert state_diagram("ContainerVolume").splitlines() == [
        "stateDiagram-v2",
        "    [*] --> Pending",
        "    Pending --> Ready",
        "    Pending --> RuntimeUnhealthy",
        "    RuntimeUnhealthy --> Pending",
        "    RuntimeUnhealthy --> Ready",
        "    Ready --> Pending",
    ]
    assert "    Finished --> [*]" in state_diagram("Executable").splitlines()
