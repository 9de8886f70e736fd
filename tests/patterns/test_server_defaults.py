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
        memory.remember_restored(f"uid-{number}", PATHS, b"value")
    for number in (0, LIMIT // 2, LIMIT - 1):
        assert memory.stored_before(f"uid-{number}", b"sent", b"stored")
        assert memory.restored_values(f"uid-{number}", PATHS) == b"value"
    # One more: the child that was looked up longest ago is forgotten, not the first.
    memory.remember_overwrite("uid-1", b"other", b"stored")
    memory.remember_restored("uid-1", PATHS, b"other")
    memory.remember_overwrite("more", b"sent", b"stored")
    memory.remember_restored("more", PATHS, b"value")
    assert memory.stored_before("uid-0", b"sent", b"stored")
    assert memory.restored_values("uid-0", PATHS) == b"value"
    assert memory.stored_before("uid-1", b"other", b"stored")
    assert memory.restored_values("uid-1", PATHS) == b"other"
    assert not memory.stored_before("uid-2", b"sent", b"stored")
    assert memory.restored_values("uid-2", PATHS) is None
