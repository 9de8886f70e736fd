"""Who owns whom, and whom to look at because of a change."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded by the test

from steersman.apiserver.registry import builtin_definitions
from steersman.controlplane.graph import FOREGROUND, ORPHAN, Graph
from steersman.controlplane.object_changes import Metadata, ObjectChange, Owner
from steersman.objects import GroupVersion

DEFINITION = next(each for each in builtin_definitions([GroupVersion("", "v1")]) if each.resource == "configmaps")


def change(
    name: str,
    *owners: str,
    block: bool = False,
    finalizers: tuple[str, ...] = (),
    going: bool = False,
    gone: bool = False,
    namespace: str = "shop",
    called: str = "",
) -> ObjectChange:
    """An object whose uid is its name in capitals."""
    references = tuple(Owner("v1", "ConfigMap", called or owner, owner.upper(), block) for owner in owners)
    stamp = "2030-01-01T00:00:00Z" if going else None
    return ObjectChange(DEFINITION, Metadata(name, namespace, name.upper(), references, finalizers, stamp), gone)


def looks(graph: Graph, seen: ObjectChange) -> list[str]:
    return list(graph.see(seen).look)


def test_a_dependent_of_an_owner_that_is_there_needs_no_look():
    graph = Graph()
    assert looks(graph, change("a")) == []
    assert looks(graph, change("b", "a")) == []
    assert looks(graph, change("b", "a")) == []
    assert [each.metadata.name for each in graph.dependents("A")] == ["b"]


def test_a_dependent_without_an_owner_is_looked_at_once():
    graph = Graph()
    assert looks(graph, change("b", "a")) == ["B"]
    assert looks(graph, change("b", "a")) == []
    # not because the owner that was never there did not go
    assert looks(graph, change("a", gone=True)) == []


def test_dependents_are_looked_at_when_their_owner_goes():
    graph = Graph()
    for each in (change("a"), change("b", "a"), change("c", "a"), change("d", "b")):
        graph.see(each)
    assert looks(graph, change("a", gone=True)) == ["B", "C"]
    assert len(graph) == 3


def test_an_owner_that_waits_is_looked_at_when_a_dependent_goes_or_lets_it_go():
    graph = Graph()
    for name in ("b", "c", "d"):
        graph.see(change("a"))
        graph.see(change(name, "a", block=True))
    assert looks(graph, change("a", finalizers=(FOREGROUND,), going=True)) == ["B", "C", "D", "A"]
    assert looks(graph, change("b", "a", block=True, gone=True)) == ["A"]
    assert looks(graph, change("c", "a", block=False)) == ["A"]
    assert looks(graph, change("d")) == ["A"]


def test_a_deletion_that_a_finalizer_holds_is_looked_at_when_it_begins():
    graph = Graph()
    graph.see(change("a", finalizers=(ORPHAN,)))
    going = change("a", finalizers=(ORPHAN,), going=True)
    assert looks(graph, going) == ["A"]
    assert looks(graph, going) == []
    assert looks(graph, change("b", finalizers=("example.com/hold",), going=True)) == []


def test_a_reference_into_another_namespace_is_reported():
    graph = Graph()
    graph.see(change("a", namespace="far"))
    findings = graph.see(change("b", "a"))
    assert list(findings.look) == ["B"]
    assert [(uid, owner.name) for uid, owner in findings.misplaced] == [("B", "a")]


def test_a_reference_by_another_name_is_looked_at():
    graph = Graph()
    graph.see(change("a"))
    findings = graph.see(change("b", "a", called="other"))
    assert (list(findings.look), findings.misplaced) == (["B"], [])


def test_a_listing_is_judged_as_a_whole():
    graph = Graph()
    listing = [change("c", "b"), change("b", "a"), change("a"), change("d", "nobody")]
    assert list(graph.replace(listing).look) == ["D"]
    # what is missing from the next one has gone
    assert list(graph.replace([change("c", "b"), change("a"), change("d", "nobody")]).look) == ["C"]


def test_however_objects_change_their_dependents_are_known():
    chance = Random(4)
    graph, there = Graph(), dict[str, ObjectChange]()
    letters = "abcdefgh"
    for _ in range(3000):
        name = chance.choice(letters)
        owners = chance.sample(letters, chance.randrange(3))
        seen = change(name, *owners, gone=chance.random() < 0.3)
        graph.see(seen)
        if seen.gone:
            there.pop(name, None)
        else:
            there[name] = seen
        if chance.random() < 0.01:
            graph.replace(list(there.values()))
        for owner in letters.upper():
            expected = {
                name for name, each in there.items() if any(o.uid == owner for o in each.metadata.owner_references)
            }
            assert {each.metadata.name for each in graph.dependents(owner)} == expected
    assert len(graph) == len(there)
