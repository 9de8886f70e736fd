"""What external systems hold can be compared between runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from steersman.simulation import ExternalSystem
from steersman.simulation.runs.external_system import external_contents

UIDS = ("0f3c1f0e-0000-4000-8000-00000000000a", "f2c81f0e-0000-4000-8000-00000000000b")


@pytest.fixture
def registry() -> Iterator[ExternalSystem]:
    system = ExternalSystem("registry of names")
    yield system
    # Other simulations of this process would compare it.
    system.objects.clear()


@pytest.mark.parametrize("uids", [UIDS, UIDS[::-1]])
def test_the_order_does_not_depend_on_uids(registry: ExternalSystem, uids: tuple[str, str]) -> None:
    """A fault changes which object gets which uid: that is no difference."""
    names = dict(zip(uids, ("blue", "red"), strict=True))
    store = {f"core/configmaps/default/{name}": metadata(uid) for uid, name in names.items()}
    store["allocations/ports"] = b"no object"
    for uid in uids:
        registry.add({"tag": f"team-{uid}"})
    contents = external_contents(store)
    # systems of other simulations in this process may hold something too
    tags = [json.loads(contents[f"external/{registry.name}/{number}"])["value"]["tag"] for number in (1, 2)]
    assert [names[tag.removeprefix("team-")] for tag in tags] == ["blue", "red"]


def metadata(uid: str) -> bytes:
    return json.dumps({"metadata": {"uid": uid}}).encode()
