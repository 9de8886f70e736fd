"""The memory of what the server added to children is bounded, and forgets those first that are not looked up any more."""

from __future__ import annotations

from steersman.patterns.children.server_defaults import ServerDefaults

LIMIT = 100_000
PATHS = (("spec", "x"),)


def test_children_of_a_large_controller_are_remembered() -> None:
    """A forgotten child is written again in each reconcile, and the write of one makes the memory forget the next."""
    memory = ServerDefaults()
    for number in range(LIMIT):
        memory.remember_overwrite(f"uid-{number}", b"sent", b"stored")
        memory.remember(f"uid-{number}", PATHS, b"value")
    for number in (0, LIMIT // 2, LIMIT - 1):
        assert memory.completes(f"uid-{number}", b"sent", b"stored")
        assert memory.get(f"uid-{number}", PATHS) == b"value"
    # One more: the child that was looked up longest ago is forgotten, not the first.
    memory.remember_overwrite("uid-1", b"other", b"stored")
    memory.remember("uid-1", PATHS, b"other")
    memory.remember_overwrite("more", b"sent", b"stored")
    memory.remember("more", PATHS, b"value")
    assert memory.completes("uid-0", b"sent", b"stored")
    assert memory.get("uid-0", PATHS) == b"value"
    assert memory.completes("uid-1", b"other", b"stored")
    assert memory.get("uid-1", PATHS) == b"other"
    assert not memory.completes("uid-2", b"sent", b"stored")
    assert memory.get("uid-2", PATHS) is None
