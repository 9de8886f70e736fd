"""Stories: what a reader learns of a run that failed."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from samples.leaky_site import PASSWORD, leaky, workload, wrong
from steersman.simulation import ALL_FAULTS, FaultSchedule, Finding, SimulationReport, Violation, fault_name, simulate
from steersman.simulation.runs.faults import (
    ChildDeleted,
    ChildEdited,
    CrashBefore,
    InterferingWrite,
)
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.schedules import PlacedFault
from steersman.simulation.runs.trace import Entry
from steersman.simulation.stories import Case, stories_of
from steersman.simulation.stories.actions import CONTROL_PLANE, OTHER_CLIENT, Action, actions_of
from steersman.simulation.stories.comparison import StoryLine, compared, shortened
from steersman.simulation.stories.recordings import recorded
from steersman.simulation.stories.story import story_of
from steersman.simulation.stories.words import Vocabulary


@pytest.fixture(scope="module")
def report() -> SimulationReport:
    return simulate(wrong, workload, faults=["crash-after-reply"])


@pytest.fixture(scope="module")
def finding(report: SimulationReport) -> Finding:
    [found] = [each for each in report.findings if "create" in str(each.schedule)]
    return found


def test_a_story_begins_with_the_fault_and_what_is_wrong(finding: Finding) -> None:
    assert finding.story is not None
    first, *violations = finding.story.headline.splitlines()
    assert first == (
        "crash after the reply to create Secret default/home-*, before the status of Site default/home is written"
    )
    assert violations
    assert all(words.startswith("-> ") for words in violations)
    assert "Secret default/home-" in violations[0]
    assert "is left behind" in violations[0]


def test_a_story_marks_the_fault_and_where_the_runs_part(finding: Finding) -> None:
    """The crash makes the operator create a second Secret, and only the second one is deleted."""
    assert finding.story is not None
    lines = [line for line in finding.story.lines if line.action is not None]
    [fault] = [number for number, line in enumerate(lines) if line.mark == "!"]
    [parting] = [number for number, line in enumerate(lines) if line.parts]
    assert fault < parting
    created = [line.mark for line in lines if line.action and line.action.words == "creates Secret default/home-*"]
    assert sorted(created) == ["", "+"]
    assert [line.action.words for line in lines if line.action and line.action.actor == "user"] == [
        "creates Site default/home",
        "deletes Site default/home",
    ]


def test_a_story_shows_no_read_no_watch_and_no_secret(finding: Finding, report: SimulationReport) -> None:
    text = str(finding.story)
    assert not {"reads", "lists", "watches"} & set(text.split())
    for shown in (text, str(report), report.page()):
        assert PASSWORD not in shown
        assert "aHVzaC1odXNo" not in shown  # in base64


def test_a_story_shows_what_a_write_changed(finding: Finding) -> None:
    assert "+   secretName: home-" in str(finding.story)


def test_the_same_schedule_has_the_same_story(finding: Finding) -> None:
    case = Case(finding.schedule, finding.violations)
    assert [str(each) for each in stories_of(leaky, [case, case])] == [str(finding.story)] * 2


def test_the_findings_do_not_depend_on_which_process_ends_first() -> None:
    """Several faults break the same promise: which of them is named must not change from run to run."""
    one, other = (
        simulate(wrong, workload, faults=["crash-after-commit", "crash-after-reply"], jobs=jobs) for jobs in (1, 3)
    )
    assert [str(finding) for finding in one.findings] == [str(finding) for finding in other.findings]
    assert "crash after sending the request to create Secret" in str(one)


def test_a_report_that_found_something_fails_a_check_with_its_stories(
    report: SimulationReport, finding: Finding
) -> None:
    with pytest.raises(AssertionError) as caught:
        report.check()
    assert str(report) in str(caught.value)
    assert str(finding.story) in str(caught.value)


def test_a_recording_is_the_trace_of_one_run_from_the_start_of_the_operator() -> None:
    one, other = recorded(leaky, [FaultSchedule(seed=1), FaultSchedule(seed=1)])
    assert one == other
    assert (one[0].actor, one[0].sort) == ("operator", "start")
    assert any(entry.sort == "commit" and entry.key == "leaky.example.com/sites/default/home" for entry in one)


# --- words

SITE = Place(actor="operator", verb="update", resource="sites/status", key="shop/home")


def committed(key: str, after: dict[str, object] | None, before: dict[str, object] | None = None) -> Entry:
    one, other = (None if tree is None else msgspec.json.encode(tree) for tree in (before, after))
    return Entry(0.0, "server", "commit", "", key=key, before=one, after=other)


def secret(**data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "home", "namespace": "shop"}, "data": data}


KINDS = Vocabulary([committed("core/secrets/shop/home", secret())])
CREATE = Place(actor="operator", verb="create", resource="secrets", key="shop/home")


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=fault_name)
def test_every_kind_of_fault_has_a_sentence_with_the_request(fault) -> None:
    words = KINDS.fault(fault, CREATE)
    assert "create Secret shop/home" in words
    assert not words.startswith(f"{fault_name(fault)}:")


def test_words_of_requests_have_kinds() -> None:
    assert KINDS.acts(CREATE) == "creates Secret shop/home"
    assert KINDS.acts(SITE) == "writes the status of sites shop/home"
    assert KINDS.acts(Place(actor="operator", verb="open", resource="external:bank", key="x")) == "calls bank: open x"
    reconciled = Place(actor="operator", verb="reconcile", resource="site", key="shop/home")
    assert KINDS.fault(CrashBefore(), reconciled) == "crash after controller site has reconciled shop/home"


def test_words_of_an_oracle_get_kinds_also_for_generated_names() -> None:
    assert KINDS.with_kinds("secrets shop/home-*1 is left behind") == "Secret shop/home-*1 is left behind"
    assert KINDS.with_kinds("two secrets at once") == "two secrets at once"


def test_a_violation_shows_no_secret_value() -> None:
    """The oracle compares values, also those of Secrets."""
    recording = (committed("core/secrets/shop/home", secret(key="cGFzc3dvcmQtMTIz")),)
    words = 'secrets shop/home: data.key is "cGFzc3dvcmQtMTIz" and should be absent'
    story = story_of(Case(FaultSchedule(seed=1), (Violation("state", words),)), recording, ())
    assert story.violations == ('Secret shop/home: data.key is "(hidden)" and should be absent',)


# --- actions


def sent(place: Place) -> Entry:
    return Entry(0.0, place.actor, "request", str(place), place=place)


def answered(place: Place, status: int = 200) -> Entry:
    return Entry(0.0, place.actor, "reply", "", place=place, status=status)


def told_actions(*entries: Entry) -> list[tuple[str, str, str]]:
    return [(each.actor, each.words, each.outcome) for each in actions_of(entries, KINDS)]


def test_a_commit_belongs_to_the_request_that_asked_for_it() -> None:
    first = committed("core/secrets/shop/home", secret())
    other = committed("core/secrets/shop/other", secret())
    assert told_actions(sent(CREATE), first, answered(CREATE), other) == [
        ("operator", "creates Secret shop/home", ""),
        (CONTROL_PLANE, "creates Secret shop/other", ""),
    ]


def test_a_write_without_effect_is_left_out_unless_the_server_rejects_it() -> None:
    assert told_actions(sent(CREATE), answered(CREATE)) == []
    assert told_actions(sent(CREATE), answered(CREATE, 409)) == [("operator", "creates Secret shop/home", "409")]


def test_a_request_that_a_crash_prevents_is_not_shown() -> None:
    fault = Entry(0.0, "operator", "fault", "", place=CREATE, fault=CrashBefore())
    crash = Entry(0.0, "operator", "crash", "crash before sending")
    assert told_actions(sent(CREATE), fault, crash) == [
        ("operator", "crash before the request to create Secret shop/home", "")
    ]


TOUCHED = {**secret(), "metadata": {"annotations": {"simulation.steersman.dev/touched": "1"}}}


@pytest.mark.parametrize(
    ("fault", "states", "words"),
    [
        (InterferingWrite(), (secret(), TOUCHED, {**TOUCHED, "type": "Opaque"}), "changes Secret shop/home"),
        (ChildEdited(), (secret(), secret(key="b3Bl"), secret(key="b3BlLWVk")), "changes Secret shop/home"),
        (ChildDeleted(), (secret(), secret(key="b3Bl"), None), "deletes Secret shop/home"),
    ],
    ids=["changed before", "edited after", "deleted after"],
)
def test_what_another_client_does_is_its_own_action(fault, states, words: str) -> None:
    update = Place(actor="operator", verb="update", resource="secrets", key="shop/home")
    happens = Entry(0.0, "operator", "fault", "", place=update, fault=fault)
    commits = [committed("core/secrets/shop/home", after, before) for before, after in pairwise(states)]
    told_ones = actions_of([sent(update), happens, *commits, answered(update)], KINDS)
    writes = {each.words: each.actor for each in told_ones if each.sort == "write"}
    assert writes == {"updates Secret shop/home": "operator", words: OTHER_CLIENT}


def test_a_reconcile_that_fails_is_shown_with_the_last_line_of_its_error() -> None:
    ends = Entry(0.0, "operator", "reconcile", "site reconciled shop/home: error: Traceback\n  ...\nValueError: no")
    fine = Entry(0.0, "operator", "reconcile", "site reconciled shop/home: success")
    assert told_actions(ends, fine) == [("operator", "site fails to reconcile shop/home: ValueError: no", "")]


# --- comparison


def action(words: str, *, actor: str = "operator", sort: str = "write") -> Action:
    return Action(time=0.0, actor=actor, sort=sort, words=words)


def marks(here: list[Action], there: list[Action]) -> list[tuple[str, str]]:
    return [(line.mark, line.action.words) for line in compared(here, there) if line.action]


def test_what_only_one_run_does_is_marked() -> None:
    a, b, c = (action(words) for words in "abc")
    fault = action("fault", sort="fault")
    assert marks([a, fault, c], [a, b]) == [("", "a"), ("!", "fault"), ("-", "b"), ("+", "c")]


def test_another_order_is_no_difference() -> None:
    a, b = action("a"), action("b")
    assert {mark for mark, _ in marks([a, b], [b, a])} == {""}


def test_times_and_generated_names_are_no_difference() -> None:
    one = msgspec.structs.replace(action("creates Pod default/home-x7k2p"), diff=("+ at: 2026-01-01T00:00:00Z",))
    other = msgspec.structs.replace(action("creates Pod default/home-bcdfg"), diff=("+ at: 2026-01-01T00:00:09Z",))
    assert marks([one], [other]) == [("", one.words)]


def test_a_deletion_is_the_same_whatever_the_object_held() -> None:
    one, other = (
        Action(time=0.0, actor="user", sort="write", words="deletes Site", change="delete", diff=(f"- {words}",))
        for words in "ab"
    )
    assert marks([one], [other]) == [("", "deletes Site")]


def test_what_both_runs_do_is_left_out_far_from_a_difference() -> None:
    same = [StoryLine(action=action(str(number))) for number in range(20)]
    user = StoryLine(action=action("creates Site", actor="user"))
    shown = shortened([user, *same, StoryLine(mark="+", action=action("more")), *same])
    assert [line.omitted or (line.action and line.action.words) for line in shown] == [
        "creates Site",
        17,
        *("17", "18", "19", "more", "0", "1", "2"),
        17,
    ]


def test_a_story_of_a_hot_loop_is_bounded() -> None:
    shown = shortened([StoryLine(mark="+", action=action("again")) for _ in range(500)])
    assert len(shown) == 61
    assert (shown[-1].omitted, shown[-1].both) == (440, False)


def test_a_fault_of_another_process_names_it() -> None:
    place = Place(actor="operator-2", verb="create", resource="secrets", key="shop/home")
    case = Case(FaultSchedule(seed=1, faults=(PlacedFault(CrashBefore(), place),)), ())
    story = story_of(case, (committed("core/secrets/shop/home", secret()),), ())
    assert story.title == "operator-2: crash before the request to create Secret shop/home"
