"""Pictures of machines: what is on them, and that nothing of it leaves its place."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from patterns.drawn_graphs import (
    BRANCHING,
    CLUSTER,
    DELETING,
    GRAPHS,
    LIVES,
    LONG,
    MERGING,
    NEW,
    ONE,
    READY,
    WAITING,
    state,
)
from patterns.pictures import PICTURES

from steersman.objects import Unstructured
from steersman.patterns.drawing import Live, Observed, mermaid, svg
from steersman.patterns.drawing.description import END, START, edges_of
from steersman.patterns.drawing.layout import Placed, Size, arrange
from steersman.patterns.drawing.svg_diagram import chains_of
from steersman.patterns.drawing.text import Font, shorten, wrap
from steersman.patterns.machine import MachineGraph

SVG = "{http://www.w3.org/2000/svg}"
DRAWN: dict[str, tuple[MachineGraph, Live | None]] = {
    **{name: (graph, None) for name, graph in GRAPHS.items()},
    **{f"{name}, live": pair for name, pair in LIVES.items()},
}
TAGS = {"waits here", "failed here", "runs now"}
#: The fonts of texts by the first word of their class, as the style has them.
FONTS = {
    "title": Font(20, bold=True),
    "name": Font(14, mono=True, bold=True),
    "condition": Font(12, bold=True),
    "said": Font(12, bold=True),
    "strong": Font(12, bold=True),
    "label": Font(11),
    "chipped": Font(11),
    "tagged": Font(11, bold=True),
}


def elements(root: ET.Element, across: float = 0, down: float = 0) -> Iterator[tuple[ET.Element, Placed]]:
    """All rectangles and texts with the room that they take."""
    for each in root:
        if each.tag == f"{SVG}g":
            moved = re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", each.get("transform", ""))
            assert moved is not None
            yield from elements(each, across + float(moved[1]), down + float(moved[2]))
        elif each.tag in {f"{SVG}rect", f"{SVG}text"}:
            x, y = float(each.get("x", "0")) + across, float(each.get("y", "0")) + down
            if each.tag == f"{SVG}rect":
                yield each, Placed(x, y, float(each.get("width", "0")), float(each.get("height", "0")))
            else:
                look = each.get("class", "").split()
                font = FONTS.get(look[0]) or (Font(11) if "small" in look else Font(12, bold="strong" in look))
                width = font.width(each.text or "")
                left = x - width / 2 if each.get("text-anchor") == "middle" else x
                yield each, Placed(left, y - font.size * 0.8, width, font.size)


def within(inner: Placed, outer: Placed, margin: float = 0.0) -> bool:
    return (
        inner.x >= outer.x + margin
        and inner.y >= outer.y + margin
        and inner.right <= outer.right - margin
        and inner.bottom <= outer.bottom - margin
    )


def overlap(one: Placed, other: Placed) -> bool:
    return one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_leaves_its_box_and_none_lies_over_another(name: str) -> None:
    """In the widest of the usual fonts: each text lies in one box or outside of all, and within the picture."""
    found = list(elements(ET.fromstring(svg(*DRAWN[name]))))
    page = next(place for each, place in found if each.get("class") == "page")
    boxes = [place for each, place in found if each.get("class", "").startswith(("box", "chip "))]
    tags = [place for each, place in found if each.get("class", "").startswith("tag ")]
    texts = [(each.text or "", place) for each, place in found if each.tag == f"{SVG}text"]
    assert texts
    for words, place in texts:
        assert words.strip()
        assert within(place, page, 8), words
        # a tag lies on the edge of its box
        around = tags if words in TAGS else boxes
        assert all(within(place, box, 3) or not overlap(place, box) for box in around), words
    for (one, first), (other, second) in itertools.combinations(texts, 2):
        assert not overlap(first, second), (one, other)


@pytest.mark.parametrize("name", GRAPHS)
def test_no_arrow_runs_through_a_box(name: str) -> None:
    graph = GRAPHS[name]
    sizes = {box: Size(100, 40) for box in (START, *graph.names, END)}
    layout = arrange(sizes, edges_of(graph), chains_of(graph))
    boxes = layout.boxes
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(boxes[one], boxes[other]), (one, other)
    for route in layout.routes:
        assert route.points[0][1] < route.points[-1][1], "arrows lead down"
        for (x, y), (to_x, to_y) in itertools.pairwise(route.points):
            assert x == to_x or y == to_y
            line = Placed(min(x, to_x), min(y, to_y), abs(x - to_x), abs(y - to_y))
            assert not [box for box, place in boxes.items() if overlap(line, place)], route


def test_the_usual_way_is_a_straight_line() -> None:
    layout = arrange(
        {box: Size(100, 40) for box in (START, *BRANCHING.names, END)},
        edges_of(BRANCHING),
        chains_of(BRANCHING),
    )
    usual = (START, "storage", "primary", "replicas", "archive", "publish", END)
    assert len({layout.boxes[box].center for box in usual}) == 1
    assert [layout.boxes[box].y for box in usual] == sorted(layout.boxes[box].y for box in usual)
    beside = {layout.boxes[box].x for box in ("degraded", "repair")}
    assert beside == {layout.boxes["degraded"].x}
    assert beside.isdisjoint({layout.boxes["storage"].x})


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def test_a_picture_shows_states_conditions_and_what_they_are_for() -> None:
    shown = texts(svg(CLUSTER))
    for node in CLUSTER.states:
        assert {node.name, node.condition} <= set(shown)
    assert "The one member that writes." in shown
    assert [shown.count(label) for label in ("Next", "Goto", "Done")] == [3, 0, 2]
    assert [shown.count(words) for words in ("may wait", "may fail")] == [3, 1]
    assert {"when the object is deleted", "clean_up", "finalizer", "gone", "Ready"} <= set(shown)
    assert "when the object is deleted" not in texts(svg(MERGING))


def test_ordered_deletion_is_shown() -> None:
    ordered = replace(CLUSTER, finalizer=None, finalizer_words="", deletes_children=True)
    words = "Children are deleted, those of the last state first: backups, replicas, primary, storage."
    assert words in " ".join(texts(svg(ordered)))
    assert words in mermaid(ordered)
    both = replace(CLUSTER, deletes_children=True)
    assert "then lets the claims go. Then children are deleted, those of the last" in " ".join(texts(svg(both)))
    assert "Before a deleted object is removed: ordered deletion. Children are deleted.<" in svg(
        replace(ONE, deletes_children=True)
    )


def looks(picture: str, kind: str) -> list[str]:
    return [each.get("class", "") for each in ET.fromstring(picture).iter(f"{SVG}{kind}")]


def test_an_object_colors_its_machine() -> None:
    picture = svg(CLUSTER, WAITING)
    boxes = [look for look in looks(picture, "rect") if look.startswith("box")]
    # on top Ready; then the states, the end, and the deletion
    assert boxes == ["box busy", "box good", "box busy here", "box unknown", "box unknown", "box unknown", "box", "box"]
    shown = texts(picture)
    assert {"Postgres default/main", "Ready False: ChildrenNotReady", "waits here", "True: Complete"} <= set(shown)
    assert "StatefulSet main-primary: 0 of 1 replica is ready" in shown
    assert shown.count("Unknown: NotReached") == 2
    arrows = [look for look in looks(picture, "path") if look.startswith("arrow")]
    assert sorted(arrows) == ["arrow"] * 5 + ["arrow passed"] * 2


def test_an_object_that_is_ready_has_gone_all_the_way() -> None:
    picture = svg(CLUSTER, READY)
    assert looks(picture, "rect").count("box good") == 6
    assert looks(picture, "path").count("arrow passed") == 5
    assert "waits here" not in texts(picture)


def test_what_goes_wrong_is_red_and_said_where_it_went_wrong() -> None:
    picture = svg(*LIVES["failed"])
    assert "box bad here" in looks(picture, "rect")
    shown = texts(picture)
    assert "failed here" in shown
    assert "Ready False: Error (before the last change of the object)" in shown


def test_a_deleted_object_is_shown_where_it_is_held() -> None:
    picture = svg(CLUSTER, DELETING)
    assert looks(picture, "rect")[-2:] == ["tag busy", "box"]
    assert looks(picture, "g") == ["aside", ""]
    assert {"runs now", "False: Deleting"} <= set(texts(picture))


def test_a_suspended_object_says_so_on_top() -> None:
    picture = svg(*LIVES["suspended"])
    shown = texts(picture)
    assert shown.index("Suspended") < shown.index("Ready False: ChildrenNotReady")
    assert looks(picture, "g") == ["aside", "aside"]
    assert "waits here" not in shown


def test_an_object_without_a_reconcile() -> None:
    shown = texts(svg(CLUSTER, NEW))
    assert "Ready: not reported" in shown
    assert shown.count("not reported") == 4


def test_a_pass_is_shown_on_the_way_that_it_took() -> None:
    graph, live = LIVES["degraded"]
    picture = svg(graph, live)
    assert looks(picture, "path").count("arrow passed") == 3  # to storage, primary, and aside to degraded
    assert texts(picture).count("not visited") == 3


def test_of_two_ends_the_one_that_was_taken_is_shown() -> None:
    early = MachineGraph(
        name="Early",
        kind="Thing",
        states=(
            state("first", "FirstReady", then="second", returns="Done"),
            state("second", "SecondReady", returns="Done"),
        ),
    )
    done = Observed("True", "Complete")
    conditions = {"Ready": done, "FirstReady": done}
    ended_early = svg(early, Live(name="a", conditions=conditions))
    went_on = svg(early, Live(name="a", conditions=conditions | {"SecondReady": done}))
    assert looks(ended_early, "path").count("arrow passed") == 2
    assert looks(went_on, "path").count("arrow passed") == 3


def test_a_picture_can_be_read_aloud() -> None:
    root = ET.fromstring(svg(CLUSTER, WAITING))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Postgres default/main in Cluster"
    assert root.findtext(f"{SVG}title") == "Postgres default/main in Cluster"
    said = root.findtext(f"{SVG}desc") or ""
    assert said.startswith(
        "Cluster reconciles Postgres; each reconcile starts with storage. storage (condition StorageReady) leads by"
    )
    assert "primary (condition PrimaryReady) leads by Next to replicas. It is False: ChildrenNotReady." in said
    assert "Before a deleted object is removed: clean_up. Takes a last backup, then lets the claims go." in said


def test_a_picture_needs_nothing_from_elsewhere_and_has_a_dark_form() -> None:
    picture = svg(CLUSTER)
    assert "@media (prefers-color-scheme: dark)" in picture
    assert re.findall(r"(?:href|src|url)\b[=(]", picture) == []
    # every rule is bound to the picture: it may stand in a page with rules of its own
    rules = re.findall(r"^ *([^@{}\n]+) \{", picture, flags=re.MULTILINE)
    assert rules
    assert [
        each for each in rules if not all(part.startswith(".steersman-machine ") for part in each.split(", "))
    ] == []


def test_what_objects_say_never_becomes_markup() -> None:
    evil = Observed("False", "<x>", '</text><script>alert("1")</script>\x00\x1b[31m & ]]>')
    live = Live(name="a/<b>", conditions={"Ready": evil, "StorageReady": evil})
    root = ET.fromstring(svg(CLUSTER, live))
    assert [each.tag for each in root.iter() if each.tag.endswith("script")] == []
    diagram = mermaid(CLUSTER, live)
    assert "<script" not in diagram
    assert 'alert("' not in diagram
    *_, body = diagram.split("---\n")
    assert set(re.findall(r"<[^>]*>", body)) == {"<b>", "</b>", "<br/>"}


def test_live_is_read_from_an_object() -> None:
    tree = {
        "apiVersion": "example.com/v1",
        "kind": "Postgres",
        "metadata": {
            "name": "main",
            "namespace": "default",
            "generation": 3,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "status": {
            "observedGeneration": 2,
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "Deleting", "message": "held"},
                {"type": "Suspended", "status": "True"},
            ],
        },
    }
    assert Live.of(Unstructured(tree)) == Live(
        name="default/main",
        conditions={"Ready": Observed("False", "Deleting", "held"), "Suspended": Observed("True")},
        deleting=True,
        suspended=True,
        observed=False,
    )


# mermaid


def test_a_diagram_for_markdown() -> None:
    diagram = mermaid(BRANCHING)
    assert diagram.startswith('---\ntitle: "Database reconciles Database"\n---\nflowchart TD\n')
    lines = [line.strip() for line in diagram.splitlines()]
    for line in (
        "start --> state_storage",
        "state_storage -- Next --> state_primary",
        "state_primary -- Goto --> state_degraded",
        "state_degraded -- Goto --> state_repair",
        "state_repair -- Done --> ready",
        "finalizer -- Done --> gone",
        'state_primary["<b>primary</b><br/>PrimaryReady<br/>Runs the primary.<br/>may wait, may fail"]',
    ):
        assert line in lines
    assert "classDef" not in diagram


def test_a_diagram_with_an_object() -> None:
    lines = [line.strip() for line in mermaid(CLUSTER, WAITING).splitlines()]
    assert lines[1] == 'title: "Postgres default/main: Ready False: ChildrenNotReady"'
    assert {"class state_storage good", "class state_primary busy", "class state_backups unknown"} <= set(lines)
    assert any(
        "<b>False: ChildrenNotReady</b><br/>StatefulSet main-primary: 0 of 1 replica is ready" in line for line in lines
    )
    deleting = mermaid(CLUSTER, DELETING)
    assert "class finalizer busy" in deleting


def test_quotes_and_brackets_of_diagrams_are_entities() -> None:
    diagram = mermaid(LONG)
    (label,) = re.findall(r'finalizer\["([^"]*)"\]', diagram)
    assert label.endswith("數據庫 #60;b#62;#38;amp; �#91;31mothers")
    title = next(line for line in diagram.splitlines() if line.startswith("title: "))
    assert json.loads(title.removeprefix("title: ")).startswith("ReplicatedAnalytical")


# text


def test_long_words_are_broken_where_their_parts_meet() -> None:
    font = Font(10, mono=True)
    assert wrap("wait_for_every_volume", 61, font) == ["wait_for_", "every_", "volume"]
    assert wrap("EveryVolumeIsBound", 61, font) == ["Every", "VolumeIs", "Bound"] or wrap(
        "EveryVolumeIsBound", 61, font
    )
    assert "".join(wrap("x" * 35, 61, font)) == "x" * 35


def test_what_does_not_fit_ends_with_an_ellipsis() -> None:
    font = Font(12)
    lines = wrap("one two three four five six seven eight nine ten", 80, font, lines=2)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    assert all(font.width(line) <= 80 for line in lines)
    assert shorten("short", 80, font) == "short"


# the pictures of the documentation


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_what_is_drawn_today(name: str) -> None:
    """Written anew by ``python -m patterns.pictures``, with tests among the folders that Python looks in."""
    stored = Path(__file__).parents[2] / "docs" / "images" / name
    assert stored.read_text(encoding="utf-8") == PICTURES[name]()
