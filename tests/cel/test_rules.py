"""CEL rules without a server: what is compiled, what it may cost, what it says of objects.

That the words are the engine's is shown by `test_rules_engine.py` and by the conformance scenarios; here are the edges that a
table of expressions does not reach, and what this room promises beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.cel import Environment, Rules, compile_rules, has_rules, rules_of

Tree = dict[str, Any]
NUMBER: Tree = {"type": "integer"}
SHORT: Tree = {"type": "string", "maxLength": 20}


def ruled(schema: Tree, *rules: str | Tree) -> Tree:
    return schema | {"x-kubernetes-validations": [{"rule": each} if isinstance(each, str) else each for each in rules]}


def obj(*rules: str | Tree, **fields: Tree) -> Tree:
    made: Tree = {"type": "object", "properties": fields}
    return ruled(made, *rules) if rules else made


def good(schema: Tree) -> Rules:
    rules, problems = compile_rules(schema)
    assert problems == []
    return rules


def said(schema: Tree, value: Any, *old: Any) -> list[tuple[str, str]]:
    return [(found.path, found.message) for found in good(schema).problems(value, *old)]


def refusals(schema: Tree) -> list[tuple[str, str]]:
    return [(found.path, found.message) for found in compile_rules(schema, path="schema")[1]]


def test_a_schema_without_rules_has_none():
    plain = obj(a=NUMBER)
    assert not has_rules(plain)
    assert not rules_of(plain)
    assert compile_rules(plain)[1] == []
    assert rules_of(plain).problems({"a": 1}) == []


def test_rules_are_reported_in_the_order_of_the_server():
    """Of a node before those below it, and in the order in which they are written."""
    schema = obj("self.a > 5", "self.a > 6", a=ruled(NUMBER, "self > 7"), b=ruled(SHORT, "self == 'x'"))
    assert said(schema, {"b": "y", "a": 1}) == [
        ("<nil>", "Invalid value: failed rule: self.a > 5"),
        ("<nil>", "Invalid value: failed rule: self.a > 6"),
        ("b", "Invalid value: \"y\": failed rule: self == 'x'"),
        ("a", "Invalid value: 1: failed rule: self > 7"),
    ]


def test_a_path_is_put_before_all_places():
    rules = good(obj(a=ruled(NUMBER, "self > 7")))
    assert [found.path for found in rules.problems({"a": 1}, path="spec")] == ["spec.a"]


def test_null_is_not_judged():
    schema = obj(a=ruled(NUMBER | {"nullable": True}, "self > 7"))
    assert said(schema, {"a": None}) == []


def test_transition_rules_need_something_to_compare_with():
    schema = obj(a=ruled(NUMBER, {"rule": "self >= oldSelf", "message": "grows"}))
    assert said(schema, {"a": 1}) == []
    assert said(schema, {"a": 1}, {}) == []
    assert said(schema, {"a": 1}, {"a": 2}) == [("a", "Invalid value: 1: grows")]


def test_an_unchanged_value_is_tolerated_with_a_warning():
    schema = obj(a=ruled(NUMBER, "self > 5"), b=NUMBER)
    verdict = good(schema).verdict({"a": 1, "b": 2}, {"a": 1, "b": 1})
    assert verdict.problems == []
    assert verdict.warnings == ["a: Invalid value: 1: failed rule: self > 5"]
    assert said(schema, {"a": 2}, {"a": 1}) == [("a", "Invalid value: 2: failed rule: self > 5")]


def test_a_transition_rule_is_never_tolerated():
    schema = obj(a=ruled(NUMBER, "self > oldSelf"))
    assert said(schema, {"a": 1}, {"a": 1}) == [("a", "Invalid value: 1: failed rule: self > oldSelf")]


def test_one_expression_may_cost_so_much():
    rules = rules_of(
        obj({"rule": f"!self.s.contains('{'y' * 400}')", "message": "dear"}, "1 > 2", s={"type": "string"})
    )
    told = rules.problems({"s": "x" * 300_000})
    assert [(found.path, found.message) for found in told] == [
        (
            "<nil>",
            (
                "Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules will "
                "be run due to call cost exceeds limit for rule: dear"
            ),
        )
    ]
    assert [found.message for found in rules.problems({"s": "x" * 1000})] == ["Invalid value: failed rule: 1 > 2"]


def test_a_loop_whose_elements_all_fail_ends_at_its_cost():
    """Errors that nothing decides are counted too: nested loops would otherwise hold up the server for hours."""

    class Counted(list[str]):
        loops = 0

        def __iter__(self) -> Iterator[str]:
            Counted.loops += 1
            return super().__iter__()

    texts: Tree = {"type": "array", "maxItems": 100, "items": SHORT}
    rules = rules_of(obj("self.l.all(x, self.l.all(y, self.l.all(z, int(x) > int(z))))", l=texts))
    [found] = rules.problems({"l": Counted(["x"] * 100)})
    assert "actual cost limit exceeded" in found.message
    assert Counted.loops < 3_000


@pytest.mark.parametrize(
    ("items", "raw", "same"),
    [
        ({"type": "number"}, [1.5], True),
        ({"type": "number"}, [1], True),
        ({"type": "integer"}, [1], True),
        ({"type": "string", "format": "date"}, ["2024-02-29"], True),
        ({"type": "string", "format": "date-time"}, ["2024-02-29T12:34:56Z"], True),
        ({"type": "string", "format": "duration"}, ["1h"], True),
        ({"type": "string", "format": "byte"}, ["aGVsbG8="], True),
        ({"type": "object", "properties": {"n": NUMBER}}, [{"n": 1}], "only supported on lists of scalar values"),
        ({"type": "array", "items": NUMBER}, [[1]], "only supported on lists of scalar values"),
    ],
)
def test_a_set_is_compared_by_the_values_of_its_items(items: Tree, raw: list[Any], same: bool | str):  # noqa: FBT001
    """kube-apiserver compares what expressions see, not the JSON, and has no sets of objects or lists."""
    schema = obj(a=ruled({"type": "array", "x-kubernetes-list-type": "set", "items": items}, "self == oldSelf"))
    messages = [message for _, message in said(schema, {"a": raw}, {"a": raw})]
    assert len(messages) == (same is not True)
    assert all((same or "failed rule") in message for message in messages)


def test_one_object_may_cost_so_much():
    rules = rules_of(obj(l={"type": "array", "items": ruled({"type": "string"}, f"!self.contains('{'y' * 200}')")}))
    assert rules.problems({"l": ["x" * 300_000] * 16}) == []
    [found] = rules.problems({"l": ["x" * 300_000] * 20})
    assert (found.path, found.message) == (
        "l[16]",
        'Invalid value: "string": validation failed due to running out of cost budget, no further validation rules will be run',
    )


def test_a_total_is_refused_that_no_expression_exceeds_alone():
    fields = {f"f{at:02}": ruled({"type": "string"}, f"self.contains('{'x' * 250}')") for at in range(14)}
    told = refusals(obj(**fields))
    assert [path for path, _ in told][-1] == "schema"
    assert told[-1][1].startswith(
        "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor "
        "of 1.101006x (try simplifying the rule,"
    )
    assert [message for _, message in told[:-1]] == [
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ] * 4


@pytest.mark.parametrize(
    ("limit", "refused"),
    [(None, True), (5, False), (31, False), (32, True)],
    ids=["no-limit", "small", "just-small-enough", "just-too-large"],
)
def test_how_often_a_rule_can_run_counts(limit: int | None, refused: bool):  # noqa: FBT001 - from the table
    items: Tree = {"type": "array", "items": ruled({"type": "string"}, "self.contains('x')")}
    if limit is not None:
        items["maxItems"] = limit
    assert bool(refusals(obj(l=items))) is refused


def test_expressions_are_compiled_when_they_are_needed():
    """A wrong expression does not affect objects that do not reach it."""
    rules = rules_of(obj(a=ruled(NUMBER, "self > 5"), b=ruled(NUMBER, "self.nope")))
    assert [found.path for found in rules.problems({"a": 1})] == ["a"]
    assert rules.problems({"b": 1})[0].message.startswith(
        'Invalid value: "integer": rule compile error: compilation failed'
    )


TOO_DEEP = [
    ("(" * 400 + "true" + ")" * 400, "expression recursion limit exceeded: 250"),
    ("true ? true : " * 400 + "true", "expression recursion limit exceeded: 250"),
    ("1" + " + 1" * 400 + " == 401", "max recursion depth exceeded"),
]


@pytest.mark.parametrize(("rule", "said"), TOO_DEEP)
def test_deeply_nested_expressions_are_refused_and_no_accident(rule: str, said: str):
    [(path, message)] = refusals(obj(rule))
    assert path == "schema.x-kubernetes-validations[0].rule"
    assert message.endswith(f"compilation failed: ERROR: <input>:-1:0: {said}")


@pytest.mark.parametrize(("rule", "said"), TOO_DEEP)
def test_deeply_nested_expressions_of_policies_are_refused_too(rule: str, said: str):
    compiled = Environment({}, {}).compiled(rule, "bool")
    assert compiled.error == f"compilation failed: ERROR: <input>:-1:0: {said}"


@pytest.mark.parametrize("rule", ["true ? true : " * 240 + "true", "1" + " + 1" * 240 + " == 241"])
@pytest.mark.parametrize("frames", [0, 300, 700])
def test_what_is_too_deep_for_the_stack_alone_is_refused_and_no_accident(rule: str, frames: int):
    """kube-apiserver accepts these: whether we do depends on the interpreter and on what it is doing."""

    def below(frames: int) -> str:
        return below(frames - 1) if frames else Environment({}, {}).compiled(rule, "bool").error

    assert below(frames) in {"", "compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded"}


def test_a_rule_may_use_a_pattern_that_only_go_has():
    r"""Python's own expressions have no ``\p{Greek}``."""
    schema = obj(a=ruled(SHORT, r"self.matches('^\\p{Greek}+$')"))
    assert refusals(schema) == []
    assert said(schema, {"a": "αβγ"}) == []
    [(path, message)] = said(schema, {"a": "x"})
    assert path == "a"
    assert "failed rule" in message


def test_what_a_rule_is_printed_with_is_escaped_as_json_for_html():
    [(_, message)] = refusals(obj({"rule": "self.x < 1 && true", "message": "m", "reason": "FieldValueInvalid"}))
    assert message.startswith(
        'Invalid value: {"Rule":"self.x \\u003c 1 \\u0026\\u0026 true","Message":"m","MessageExpression":"",'
        '"Reason":"FieldValueInvalid","FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: '
        "undefined field 'x'\n | self.x < 1 && true\n | ....^"
    )


def test_values_are_never_changed():
    keyed: Tree = {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": obj(k=SHORT) | {"required": ["k"]},
    }
    tags: Tree = {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": SHORT}
    schema = obj("(self.tags + ['z']).size() == 3 && (self.keyed + self.keyed).size() == 1", tags=tags, keyed=keyed)
    value = {"tags": ["a", "b"], "keyed": [{"k": "a"}]}
    assert said(schema, value) == []
    assert value == {"tags": ["a", "b"], "keyed": [{"k": "a"}]}


def test_equal_neighbors_are_sorted():
    numbers = ruled({"type": "array", "items": NUMBER, "maxItems": 5}, "self.isSorted()")
    assert said(numbers, [1, 1, 2]) == []
    assert said(numbers, [2, 1, 1]) == [("<nil>", "Invalid value: failed rule: self.isSorted()")]
