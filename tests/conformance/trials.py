"""Scenarios from tables: bodies that are created for trial, and changes of one object, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.bodies import Tree
from conformance.scenario import Scenario, delete, get, patch, post, put, scenario

#: By theme: a collection, and bodies for it.
Trials = Mapping[str, tuple[str, Sequence[Tree]]]
#: By theme: a collection, the first body, and merge patches.
Changes = Mapping[str, tuple[str, Tree, Sequence[Tree]]]


def trial_scenarios(table: Trials) -> list[Scenario]:
    """A scenario for each theme, in which nothing is stored."""
    return [
        scenario(f"trials-of-{name}", "Kinds, Status errors", *(post(path, body, dryRun="All") for body in bodies))
        for name, (path, bodies) in table.items()
    ]


def change_scenarios(table: Changes) -> list[Scenario]:
    """A scenario for each theme: an object is created, patched, put back and deleted."""
    made: list[Scenario] = []
    for name, (path, body, changes) in table.items():
        one = f"{path}/{body['metadata']['name']}"
        steps = [post(path, body), *(patch(one, change) for change in changes), get(one), put(one, body), delete(one)]
        made.append(scenario(f"changes-of-{name}", "Kinds, Update, Status errors", *steps))
    return made


def status_scenarios(table: Changes) -> list[Scenario]:
    """A scenario for each theme, in which the patches change the status."""
    made: list[Scenario] = []
    for name, (path, body, changes) in table.items():
        one = f"{path}/{body['metadata']['name']}"
        steps = [post(path, body), *(patch(f"{one}/status", change) for change in changes), get(one), delete(one)]
        made.append(scenario(f"status-of-{name}", "Kinds, Subresources, Status errors", *steps))
    return made
