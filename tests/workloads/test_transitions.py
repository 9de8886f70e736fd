"""The tables of states: every transition that DCP allows is allowed, and no other."""

from __future__ import annotations

from typing import get_args

import pytest

from steersman.workloads.kinds import ContainerNetworkState, ContainerState, ContainerVolumeState, ExecutableState
from steersman.workloads.transitions import BY_KIND, IllegalTransition, check, is_final

STATES = {
    "Executable": ExecutableState,
    "ContainerExec": ExecutableState,
    "Container": ContainerState,
    "ContainerNetwork": ContainerNetworkState,
    "ContainerVolume": ContainerVolumeState,
}


@pytest.mark.parametrize("kind", STATES)
def test_a_table_has_the_states_of_its_kind(kind):
    assert set(BY_KIND[kind]) == set(get_args(STATES[kind]))


@pytest.mark.parametrize("kind", BY_KIND)
def test_a_transition_is_legal_only_if_the_table_has_it(kind):
    table = BY_KIND[kind]
    for old in table:
        for new in table:
            if old == new or new in table[old]:
                check(kind, old, new)
            else:
                with pytest.raises(IllegalTransition, match=f"^{kind} cannot go from '{old}' to '{new}'"):
                    check(kind, old, new)


def test_a_run_of_an_executable_never_begins_again():
    for final in ("Terminated", "FailedToStart", "Finished"):
        assert BY_KIND["Executable"][final] == {"Unknown"}
    assert is_final("Executable", "Unknown")


def test_an_unknown_state_is_named():
    with pytest.raises(IllegalTransition, match="Container has no state 'Sleeping'"):
        check("Container", "Running", "Sleeping")
