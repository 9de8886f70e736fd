"""Label and field selectors."""

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from steersman.errors import SelectorError
from steersman.objects.selectors import FieldRequirement, FieldSelector, LabelRequirement, Selector

NAMES = st.sampled_from(["a", "b", "app", "in", "notin", "example.com/tier", "A_1.x"])
VALUES = st.sampled_from(["", "a", "b", "web", "in", "10", "9", "A_1.x"])


def requirements() -> st.SearchStrategy[LabelRequirement]:
    some = st.lists(VALUES, min_size=1, max_size=4).map(tuple)
    one = VALUES.map(lambda value: (value,))
    number = st.integers(0, 20).map(lambda value: (str(value),))
    return st.one_of(
        st.builds(LabelRequirement, NAMES, st.sampled_from(["In", "NotIn"]), some),
        st.builds(LabelRequirement, NAMES, st.sampled_from(["Equals", "DoubleEquals", "NotEquals"]), one),
        st.builds(LabelRequirement, NAMES, st.sampled_from(["Exists", "DoesNotExist"])),
        st.builds(LabelRequirement, NAMES, st.sampled_from(["Gt", "Lt"]), number),
    )


def selectors() -> st.SearchStrategy[Selector]:
    return st.lists(requirements(), max_size=5).map(lambda found: Selector(tuple(found)))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("  ", ""),
        ("app=web", "app=web"),
        ("app == web", "app==web"),
        ("z,!y, x in ( b,a,a )", "x in (a,b),!y,z"),
        ("a notin ()", "a notin ()"),
        ("a in (,b)", "a in (,b)"),
        ("a=,b!=", "a=,b!="),
        ("a>5,b<7", "a>5,b<7"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("example.com/tier!=db", "example.com/tier!=db"),
    ],
)
def test_text_form(text: str, printed: str) -> None:
    assert str(Selector.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("app=web", {"app": "web"}, True),
        ("app=web", {}, False),
        ("app!=web", {}, True),
        ("app notin (web)", {}, True),
        ("app notin (web)", {"app": "web"}, False),
        ("app in (web,db)", {"app": "db"}, True),
        ("app", {"app": ""}, True),
        ("!app", {"app": ""}, False),
        ("n>5", {"n": "10"}, True),
        ("n>5", {"n": "5"}, False),
        ("n<5", {"n": "x"}, False),
        ("n<5", {}, False),
        ("n<5", {"n": "1_0"}, False),
    ],
)
def test_matching(text: str, labels: dict[str, str], *, selected: bool) -> None:
    assert Selector.parse(text).matches(labels) is selected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a in b", r"expected '\(', found 'b' at position 6"),
        ("a,", "expected a label key, found the end"),
        (",a", "expected a label key"),
        ("a b", "expected one of"),
        ("!a=b", "expected ',' or the end"),
        ("a in (b", r"expected ',' or '\)'"),
        ("a>x", "needs an integer"),
        ("a=-b", "starting and ending with a letter or digit"),
        ("a=" + "x" * 64, "at most 63"),
        ("Example.com/a", "lower-case DNS name"),
        ("a/b/c", "before '/'"),
        ("/a", "before '/'"),
        ("a/", "1 to 63"),
        ("a=b=c", "expected ',' or the end"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError, match=complaint):
        Selector.parse(text)


def test_requirements_are_checked_when_made() -> None:
    for wrong in (("a", "In", ()), ("a", "Exists", ("x",)), ("a", "Equals", ("x", "y")), ("a", "Near", ("x",))):
        with pytest.raises(SelectorError, match="label 'a'"):
            LabelRequirement(*wrong)  # type: ignore[arg-type]


def test_from_a_label_selector_in_json() -> None:
    selector = Selector.from_label_selector(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["db"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert str(selector) == "app=web,!old,tier notin (db)"


def test_from_a_typed_label_selector() -> None:
    expression = SimpleNamespace(key="tier", operator="In", values=["a", "b"])
    typed = SimpleNamespace(match_labels=None, match_expressions=[expression])
    assert str(Selector.from_label_selector(typed)) == "tier in (a,b)"


def test_an_absent_label_selector_selects_nothing_and_an_empty_one_everything() -> None:
    nothing, everything = Selector.from_label_selector(None), Selector.from_label_selector({})
    assert not nothing.matches({})
    assert not nothing.matches({"nothing": "x"})
    assert not Selector.parse(str(nothing)).matches({})
    assert everything.matches({"a": "b"})
    assert not everything


def test_unknown_operators_of_match_expressions_are_refused() -> None:
    with pytest.raises(SelectorError, match="'Gt' is not an operator of matchExpressions"):
        Selector.from_label_selector({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})


def test_the_required_value_of_a_label() -> None:
    selector = Selector.parse("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.required_value(key) for key in "abcde"] == ["1", "2", None, None, None]


@given(selectors(), st.dictionaries(NAMES, VALUES))
def test_selectors_read_back_what_they_print(selector: Selector, labels: dict[str, str]) -> None:
    again = Selector.parse(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)
    assert again.matches(labels) == selector.matches(labels)


@given(selectors(), selectors(), st.dictionaries(NAMES, VALUES))
def test_both_selectors_must_match(left: Selector, right: Selector, labels: dict[str, str]) -> None:
    assert (left & right).matches(labels) == (left.matches(labels) and right.matches(labels))


@given(st.text("ab=!(), <>in", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = Selector.parse(text)
    except SelectorError:
        return
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("metadata.name=web", "metadata.name=web"),
        ("metadata.name==web", "metadata.name=web"),
        ("z=1,a!=2,", "a!=2,z=1"),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("spec.nodeName=", "spec.nodeName="),
    ],
)
def test_field_selectors(text: str, printed: str) -> None:
    assert str(FieldSelector.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name", "has no =, == or !="),
        (r"a=\x", "unknown escape"),
        ("a=b\\", "unknown escape"),
        ("a=b=c", r"value as \\="),
        ("=b", "not a field name"),
    ],
)
def test_field_selector_refusals(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError, match=complaint):
        FieldSelector.parse(text)


def test_fields_come_from_a_mapping_or_a_function() -> None:
    selector = FieldSelector.parse("spec.nodeName!=,metadata.name=web")
    assert selector.matches({"metadata.name": "web", "spec.nodeName": "n1"})
    assert not selector.matches({"metadata.name": "web"})
    assert selector.matches(lambda _: "web")
    assert FieldSelector.parse("spec.nodeName=").matches(lambda _: None)
    assert selector.required_value("metadata.name") == "web"
    assert selector.required_value("spec.nodeName") is None


@given(st.dictionaries(st.sampled_from(["a", "metadata.name", "x.y"]), st.text(max_size=8)))
def test_field_selectors_read_back_any_value(fields: dict[str, str]) -> None:
    selector = FieldSelector.of(fields)
    assert FieldSelector.parse(str(selector)) == selector
    assert selector.matches(fields)
    assert (selector & FieldSelector((FieldRequirement("a", "!=", fields.get("a", "")),))).matches(fields) is False
