"""Rules in CEL: which expressions a definition may have, and what they say of objects."""

from __future__ import annotations

from typing import Any

from conformance.boats import BOATS, CRDS, NUMBER, STRING, Tree, boat, changed, crd, installed, obj, tried, version
from conformance.scenario import get, patch, post, put, scenario

RULES = "x-kubernetes-validations"
ONE = f"{BOATS}/a"
SHORT: Tree = {"type": "string", "maxLength": 40}
DOUBLE: Tree = {"type": "number"}
FLAG: Tree = {"type": "boolean"}
EITHER: Tree = {"x-kubernetes-int-or-string": True}
MOMENT: Tree = {"type": "string", "format": "date-time"}
LENGTH: Tree = {"type": "string", "format": "duration"}
BYTES: Tree = {"type": "string", "format": "byte", "maxLength": 40}
TEXTS: Tree = {"type": "array", "maxItems": 10, "items": SHORT}
NUMBERS: Tree = {"type": "array", "maxItems": 10, "items": NUMBER}
SET: Tree = TEXTS | {"x-kubernetes-list-type": "set"}
MAP: Tree = {"type": "object", "maxProperties": 10, "additionalProperties": SHORT}
PARTS: Tree = {
    "type": "array",
    "maxItems": 10,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": obj(name=SHORT, size=NUMBER) | {"required": ["name"]},
}


def ruled(schema: Tree, *rules: str | Tree) -> Tree:
    """A schema with rules."""
    return schema | {RULES: [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def kind(*rules: str | Tree, **fields: Tree) -> Tree:
    """The schema of a kind with rules on its spec."""
    return obj(spec=ruled(obj(**fields), *rules) if rules else obj(**fields))


#: Definitions: those that are taken, and those that are refused, each for one reason.
DEFINITIONS: dict[str, Tree] = {
    "good": kind("self.a < self.b", a=NUMBER, b=NUMBER),
    "name-unknown": kind("x > 1", a=NUMBER),
    "field-unknown": kind("self.b > 1", a=NUMBER),
    "function-unknown": kind("self.a.twice() > 1", a=NUMBER),
    "types-differ": kind("self.a == 'x'", a=NUMBER),
    "no-operator": kind("self.a + 'x' == 'y'", a=NUMBER),
    "no-condition": kind("self.a", a=NUMBER),
    "not-a-list": kind("self.a.all(x, x > 1)", a=NUMBER),
    "two-mistakes": kind("self.b > 1 && self.c > 1", a=NUMBER),
    "macro-without-name": kind("self.a.all(1, true)", a=TEXTS),
    "has-without-field": kind("has(self)", a=NUMBER),
    "end-too-early": kind("self.a >", a=NUMBER),
    "sign-too-many": kind("self.a > 1)", a=NUMBER),
    "bracket-open": kind("(self.a > 1", a=NUMBER),
    "brackets-too-deep": kind(f"{'(' * 400}true{')' * 400}", a=NUMBER),
    "lists-too-deep": kind(f"{'[' * 400}{']' * 400} == []", a=NUMBER),
    "conditions-too-deep": kind(f"{'true ? true : ' * 400}true", a=NUMBER),
    "sum-too-long": kind(f"1{' + 1' * 400} == 401", a=NUMBER),
    "path-too-long": kind(f"self{'.a' * 400} == 1", a=NUMBER),
    "single-equals": kind("self.a = 1", a=NUMBER),
    "single-and": kind("self.a & true", a=FLAG),
    "text-open": kind("self.a == 'x", a=STRING),
    "reserved-name": kind("for > 1", a=NUMBER),
    "number-too-large": kind("self.a < 9223372036854775808", a=NUMBER),
    "lists-of-two-types": kind("self.a in [1, 'x']", a=NUMBER),
    "duration-none": kind("self.a > duration('long')", a=LENGTH),
    "timestamp-none": kind("self.a > timestamp('late')", a=MOMENT),
    "pattern-none": kind("self.a.matches('(')", a=SHORT),
    "format-and-arguments": kind("'%d'.format([self.a]) == 'x'", a=SHORT),
    "format-too-many": kind("'%s'.format([self.a, self.a]) == 'x'", a=SHORT),
    "constant-without-value": kind("int('x') == self.a", a=NUMBER),
    "null-for-text": kind("self.a == null", a=SHORT),
    "unknown-fields-unseen": kind("self.a == 1", a={"x-kubernetes-preserve-unknown-fields": True}),
    "metadata-unseen": ruled(obj(spec=obj()), "self.metadata.labels == {}"),
    "metadata-seen": ruled(obj(spec=obj()), "self.metadata.name != 'x' && self.kind == 'Boat'"),
    "escaped-names": kind("self.x__dash__y == self.__namespace__", **{"x-y": SHORT, "namespace": SHORT}),
    "message-of-wrong-type": kind({"rule": "self.a > 1", "messageExpression": "self.a"}, a=NUMBER),
    "message-wrong": kind({"rule": "self.a > 1", "messageExpression": "self.b"}, a=NUMBER),
    "message-dear": kind(
        {
            "rule": "self.a == 'x'",
            "messageExpression": "self.a.replace('a', 'bbbbbbbbbb').replace('b', 'cccccccccc') + self.a",
        },
        a=STRING,
    ),
    "old-in-a-list": kind(a=TEXTS | {"items": ruled(SHORT, "self == oldSelf")}),
    "old-in-a-set": kind(a=SET | {"items": ruled(SHORT, "self == oldSelf")}),
    "old-in-a-map": kind(a=MAP | {"additionalProperties": ruled(SHORT, "self == oldSelf")}),
    "old-optional-unused": kind({"rule": "self.a > 1", "optionalOldSelf": True}, a=NUMBER),
    "old-optional": kind({"rule": "oldSelf.hasValue() || self.a > 1", "optionalOldSelf": True}, a=NUMBER),
    "dear-comparison-of-all": kind(
        "self.all(x, self.exists_one(y, x == y))".replace("self", "self.a"), a={"type": "array", "items": STRING}
    ),
    "dear-with-limits": kind("self.a.all(x, self.a.exists_one(y, x == y))", a=TEXTS),
    "dear-in-a-list": kind(a={"type": "array", "items": obj(b=ruled(STRING, "self.contains('x')"))}),
    "dear-in-a-list-with-limit": kind(
        a={"type": "array", "maxItems": 5, "items": obj(b=ruled(STRING, "self.contains('x')"))}
    ),
    "dear-in-a-map": kind(a={"type": "object", "additionalProperties": ruled(STRING, "self == 'x'")}),
    "dear-a-little": kind(a={"type": "array", "maxItems": 45, "items": ruled(STRING, "self.contains('x')")}),
    "dear-a-little-more": kind(a={"type": "array", "maxItems": 80, "items": ruled(STRING, "self.contains('x')")}),
    "dear-all-together": kind(
        # Four of them are dearer than the rest, and so the ones that are named.
        **{f"f{at}": ruled(STRING, f"self.contains('{'x' * (310 if at < 4 else 240)}')") for at in range(14)},
    ),
}

#: Functions by family: the type of ``self``, the rule, a value for which it holds, one for which it does not or has no answer.
FAMILIES: dict[str, list[tuple[Tree, str, Any, Any]]] = {
    "numbers": [
        (NUMBER, "self + 1 > 2 && self * 2 < 20", 5, 0),
        (NUMBER, "self / 2 == 3 && self % 2 == 1", 7, -7),
        (NUMBER, "9223372036854775807 + self > 0", 0, 1),
        (NUMBER, "10 / self == 2", 5, 0),
        (NUMBER, "uint(self) > 3u && double(self) < 9.5", 5, -1),
        (DOUBLE, "self > 1 && self * 2.0 == 5.0", 2.5, 1),
        (DOUBLE, "string(self) == '2.5' && int(self) == 2", 2.5, 1234567.5),
        (FLAG, "self || !self && self == true", True, False),
        (EITHER, "type(self) == int ? self > 5 : self.endsWith('%')", "5%", 5),
        (EITHER, "self > 3", 5, "x"),
    ],
    "texts": [
        (SHORT, "self.startsWith('a') && self.endsWith('z') && self.contains('m')", "amz", "a"),
        (SHORT, "self.matches('^[a-z]+$') && self.size() == 3", "abc", "ab1"),
        (SHORT, "self.find('[0-9]+') == '42' && self.findAll('[0-9]').size() == 3", "a42b1", "a"),
        (SHORT, "self.charAt(1) == 'b' && self.indexOf('b') == 1 && self.lastIndexOf('b') == 3", "abcb", ""),
        (SHORT, "self.lowerAscii() == 'abc' && self.upperAscii() == 'ABC'", "aBc", "x"),
        (SHORT, "self.replace('a', 'b', 1) == 'ba' && self.substring(1, 2) == 'a'", "aa", "a"),
        (SHORT, "self.split(',').size() == 2 && self.trim() == self", "a,b", " a,b"),
        (SHORT, "'%s:%d:%.2f:%x'.format([self, 5, 1.5, 255]) == 'a:5:1.50:ff'", "a", "b"),
        (SHORT, "strings.quote(self) == '\"a\"'", "a", "b"),
        (BYTES, "self == b'hello' && string(self).size() == 5", "aGVsbG8=", "aA=="),
    ],
    "lists": [
        (NUMBERS, "self.isSorted() && self.sum() == 6 && self.min() == 1 && self.max() == 3", [1, 2, 3], []),
        (TEXTS, "self.indexOf('b') == 1 && self.lastIndexOf('b') == 2 && self.join('-') == 'a-b-b' && 'a' in self", ["a", "b", "b"], ["b"]),
        (TEXTS, "self.all(x, x.size() == 1) && self.exists(x, x == 'a') && self.exists_one(x, x == 'b')", ["a", "b"], ["a"]),
        (TEXTS, "self.map(x, x + '!').filter(x, x != 'a!') == ['b!']", ["a", "b"], ["a"]),
        (NUMBERS, "self.all(i, v, i < v) && self.transformList(i, v, i * v) == [0, 2]", [1, 2], [0]),
        (TEXTS, "self.slice(0, 2) == ['b', 'a'] && self.reverse()[0] == 'c' && self.sort()[0] == 'a'", ["b", "a", "c"], ["a"]),
        (TEXTS, "self.distinct().size() == 2 && self.sortBy(x, x.size())[0] == 'b'", ["aa", "b", "b"], ["aa"]),
        (TEXTS, "sets.contains(self, ['a']) && sets.equivalent(self, ['b', 'a']) && !sets.intersects(self, ['z'])", ["a", "b"], ["z"]),
        (SET, "self == ['b', 'a'] && (self + ['a']).size() == 2", ["a", "b"], ["a", "c"]),
        (PARTS, "self == self && self[0].size == 1 && self.map(x, x.size).sum() == 3", [{"name": "a", "size": 1}, {"name": "b", "size": 2}], []),
        (TEXTS, "self[5] == 'x'", ["a", "b", "c", "d", "e", "x"], ["a"]),
    ],
    "maps": [
        (MAP, "self.a == 'x' && self['b'] == 'y' && 'a' in self && has(self.b)", {"a": "x", "b": "y"}, {"a": "x"}),
        (MAP, "self.all(k, self[k].size() == 1) && self.size() == 1", {"a": "x"}, {"a": "xx"}),
        (MAP, "self.transformMap(k, v, v + k) == {'a': 'xa'} && self.all(k, v, k != v)", {"a": "x"}, {"a": "a"}),
        (MAP, "self.?a.orValue('none') == 'x' && self[?'b'].hasValue() == false", {"a": "x"}, {"b": "x"}),
        (MAP, "self.?a.optMap(x, x.size()).value() == 1", {"a": "x"}, {}),
        (obj(a=SHORT, b=SHORT), "has(self.a) && !self.?b.hasValue()", {"a": "x"}, {"b": "x"}),
    ],
    "times": [
        (MOMENT, "self > timestamp('2020-01-01T00:00:00Z') && self.getFullYear() == 2024", "2024-02-29T12:34:56Z", "2019-01-01T00:00:00Z"),
        (MOMENT, "self.getMonth() == 1 && self.getDate() == 29 && self.getDayOfWeek() == 4", "2024-02-29T12:34:56Z", "2024-03-01T00:00:00Z"),
        (MOMENT, "self.getHours('+02:00') == 14 && self.getHours() == 12", "2024-02-29T12:34:56Z", "2024-02-29T13:34:56Z"),
        (MOMENT, "self + duration('1h') - self == duration('3600s')", "2024-02-29T12:34:56Z", "9999-12-31T23:59:59Z"),
        (LENGTH, "self > duration('1h') && self.getMinutes() == 90 && string(self) == '5400s'", "1h30m", "5m"),
    ],
    "resources": [
        (SHORT, "quantity(self).isGreaterThan(quantity('1G')) && isQuantity(self)", "1Gi", "1M"),
        (SHORT, "quantity(self).add(quantity('500m')).compareTo(quantity('1')) == 0", "500m", "x"),
        (SHORT, "quantity(self).asInteger() == 1024 && sign(quantity(self)) == 1", "1Ki", "1.5"),
        (SHORT, "semver(self).isLessThan(semver('1.10.0')) && semver(self).minor() == 2", "1.2.3", "1.2"),
        (SHORT, "isSemver(self, true) && !isSemver(self)", "v1.2", "1.2.3"),
        (SHORT, "!format.dns1123Label().validate(self).hasValue()", "good", "Bad_"),
        (SHORT, "format.named('uuid').value().validate(self).hasValue()", "none", "2c5c5bb0-5d5f-4f57-9c1b-0a1b2c3d4e5f"),
    ],
    "addresses": [
        (SHORT, "url(self).getHost() == 'example.com:80' && url(self).getPort() == '80'", "https://example.com:80/a", "a b"),
        (SHORT, "url(self).getEscapedPath() == '/a%20b' && url(self).getQuery()['k'] == ['v']", "https://a/a%20b?k=v", "https://a/"),
        (SHORT, "isURL(self) && url(self).getScheme() == 'https'", "https://a", "a"),
        (SHORT, "ip(self).family() == 4 && ip(self).isGlobalUnicast()", "10.1.2.3", "1.2.3.400"),
        (SHORT, "isIP(self) && ip.isCanonical(self) && ip(self).isLoopback()", "::1", "0::1"),
        (SHORT, "cidr(self).containsIP('10.1.2.3') && cidr(self).prefixLength() == 8", "10.0.0.0/8", "10.0.0.0/33"),
        (SHORT, "cidr(self).masked() == cidr('10.0.0.0/8') && cidr(self).containsCIDR('10.1.0.0/16')", "10.1.2.3/8", "11.0.0.0/8"),
    ],
}  # fmt: skip


def family(rules: list[tuple[Tree, str, Any, Any]]) -> Tree:
    """A kind with a field for each rule."""
    return obj(spec=obj(**{f"f{at}": ruled(type_, rule) for at, (type_, rule, _, _) in enumerate(rules)}))


#: Rules with all that can stand beside an expression, on ``a`` above 5: what is said of 1.
WORDED: dict[str, Tree] = {
    "message": {"rule": "self.a > 5", "message": " too small "},
    "message-expression": {"rule": "self.a > 5", "messageExpression": "'a is %d'.format([self.a])"},
    "message-expression-fails": {
        "rule": "self.a > 5",
        "message": "small",
        "messageExpression": "string(10 / (self.a - 1))",
    },
    "message-expression-empty": {"rule": "self.a > 5", "messageExpression": "' '"},
    "reason-forbidden": {"rule": "self.a > 5", "reason": "FieldValueForbidden"},
    "reason-required": {"rule": "self.a > 5", "reason": "FieldValueRequired", "fieldPath": ".b"},
    "reason-duplicate": {"rule": "self.a > 5", "reason": "FieldValueDuplicate", "fieldPath": ".a"},
    "field-path": {"rule": "self.a > 5", "message": "small", "fieldPath": ".m['x y']"},
    "error": {"rule": "self.b == 'x'", "message": "b is x"},
}
STRICT = kind(
    "self.a > 5",
    a=ruled(NUMBER, "self > 6"),
    b=SHORT,
    items=TEXTS | {"items": ruled(SHORT, "self != 'x'")},
    parts=PARTS | {"items": PARTS["items"] | {RULES: [{"rule": "self.size > 5"}]}},
)
OPEN = kind(a=NUMBER, b=SHORT, items=TEXTS, parts=PARTS)
#: What is there before there were rules, and what is written then.
RATCHETED: dict[str, tuple[Tree, Tree]] = {
    "unchanged": ({"a": 1}, {"a": 1}),
    "other-field": ({"a": 1}, {"a": 1, "b": "x"}),
    "changed": ({"a": 1}, {"a": 2}),
    "list-unchanged": ({"a": 9, "items": ["x"]}, {"a": 9, "items": ["x"]}),
    "list-longer": ({"a": 9, "items": ["x"]}, {"a": 9, "items": ["x", "y"]}),
    "keyed-other-order": (
        {"a": 9, "parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]},
        {"a": 9, "parts": [{"name": "b", "size": 2}, {"name": "a", "size": 1}]},
    ),
    "keyed-one-changed": (
        {"a": 9, "parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]},
        {"a": 9, "parts": [{"name": "a", "size": 1}, {"name": "b", "size": 3}]},
    ),
}
TRANSITIONS = kind(
    {"rule": "self.b == oldSelf.b", "message": "b stays"},
    {"rule": "oldSelf.hasValue() || self.a < 100", "optionalOldSelf": True, "message": "begins small"},
    a=ruled(NUMBER, {"rule": "self >= oldSelf", "message": "a grows"}),
    b=SHORT,
    tags=ruled(SET, {"rule": "self == oldSelf", "message": "tags stay"}),
    parts=PARTS | {"items": obj(name=SHORT, size=ruled(NUMBER, "self >= oldSelf")) | {"required": ["name"]}},
)

NULLABLE: Tree = SHORT | {"nullable": True}
OBJECTS: Tree = obj(**{"a": NULLABLE, "b": NUMBER, "c": NUMBER, "a__b": SHORT, "x-y": SHORT, "namespace": SHORT})


def set_of(items: Tree) -> Tree:
    """A list with set semantics."""
    return {"type": "array", "maxItems": 10, "x-kubernetes-list-type": "set", "items": items}


#: Sets of items that have another form as values than in JSON.
SETS: dict[str, Tree] = {
    "integers": set_of(NUMBER),
    "doubles": set_of(DOUBLE),
    "flags": set_of(FLAG),
    "either": set_of(EITHER),
    "days": set_of(SHORT | {"format": "date"}),
    "moments": set_of(SHORT | {"format": "date-time"}),
    "lengths": set_of(SHORT | {"format": "duration"}),
    "bytes": set_of(BYTES),
    "lists": set_of({"type": "array", "maxItems": 3, "items": NUMBER, "x-kubernetes-list-type": "atomic"}),
}
#: What is compared with the old value: the schema, that value, and new ones.
COMPARED: dict[str, list[Any]] = {
    "null-instead-of-another-field": [OBJECTS, {"a": None, "b": 1}, {"b": 1, "c": 2}, {"c": 1, "b": 1}],
    "null": [OBJECTS, {"a": None, "b": 1}, {"a": None, "b": 1}, {"b": 1}, {"a": None}],
    "field-with-two-underscores": [OBJECTS, {"a__b": "x"}, {"a__b": "x"}, {"a__b": "y"}],
    "field-with-a-dash": [OBJECTS, {"x-y": "x"}, {"x-y": "x"}, {"x-y": "y"}],
    "field-with-a-reserved-name": [OBJECTS, {"namespace": "x"}, {"namespace": "x"}, {"namespace": "y"}],
    "set-of-integers": [SETS["integers"], [1, 2], [2, 1], [1, 2, 3]],
    "set-of-whole-doubles": [SETS["doubles"], [1, 2], [1, 2], [2, 1]],
    "set-of-doubles": [SETS["doubles"], [1.5, 2.5], [1.5, 2.5], [2.5, 1.5]],
    "set-of-mixed-doubles": [SETS["doubles"], [1.5, 2], [1.5, 2]],
    "set-of-flags": [SETS["flags"], [True, False], [False, True]],
    "set-of-either": [SETS["either"], [1, "a"], ["a", 1]],
    "set-of-days": [SETS["days"], ["2024-02-29"], ["2024-02-29"]],
    "set-of-moments": [SETS["moments"], ["2024-02-29T12:34:56Z"], ["2024-02-29T12:34:56Z"]],
    "set-of-lengths": [SETS["lengths"], ["1h"], ["1h"], ["60m"]],
    "set-of-bytes": [SETS["bytes"], ["aGVsbG8="], ["aGVsbG8="]],
    "keyed-by-whole-doubles": [
        PARTS | {"x-kubernetes-list-map-keys": ["n"], "items": obj(n=DOUBLE, size=NUMBER) | {"required": ["n"]}},
        [{"n": 1, "size": 1}], [{"n": 1, "size": 1}], [{"n": 1.0, "size": 2}],
    ],
    "keyed-by-a-name-with-a-dash": [
        PARTS | {"x-kubernetes-list-map-keys": ["my-key"], "items": obj(**{"my-key": SHORT, "size": NUMBER}) | {"required": ["my-key"]}},
        [{"my-key": "a", "size": 1}, {"my-key": "b", "size": 2}], [{"my-key": "a", "size": 1}, {"my-key": "b", "size": 2}],
        [{"my-key": "b", "size": 2}, {"my-key": "a", "size": 1}], [{"my-key": "b", "size": 2}],
    ],
}  # fmt: skip
UNIONS = [
    "self.a == self.b", "(self.a + self.b).size() == 2", "(self.a + self.b) == self.a", "(self.a + self.b).all(x, x == x)",
]  # fmt: skip
UNITED: dict[str, list[tuple[list[Any], list[Any]]]] = {
    "doubles": [([1, 2], [1, 2]), ([1.5, 2], [1.5])],
    "integers": [([1, 2], [2, 1])],
    "days": [(["2024-02-29"], ["2024-02-29"])],
    "lengths": [(["1h"], ["1h"])],
    "bytes": [(["aGVsbG8="], ["aGVsbG8="])],
    "lists": [([[1]], [[1]])],
}

SCENARIOS = [
    *(
        scenario(f"definition-{name}", "Kinds", post(CRDS, crd(version(schema=schema)), dryRun="All"))
        for name, schema in DEFINITIONS.items()
    ),
    *(
        scenario(
            f"functions-of-{name}", "Kinds, Status errors",
            installed(version(schema=family(rules))),
            tried(boat(spec={f"f{at}": good for at, (_, _, good, _) in enumerate(rules)})),
            tried(boat(spec={f"f{at}": bad for at, (_, _, _, bad) in enumerate(rules)})),
        )
        for name, rules in FAMILIES.items()
    ),
    *(
        scenario(
            f"worded-{name}", "Kinds, Status errors",
            installed(version(schema=kind(rule, a=NUMBER, b=SHORT, m=MAP))),
            tried(boat(spec={"a": 1})), tried(boat(spec={"a": 6, "b": "x"})),
        )
        for name, rule in WORDED.items()
    ),
    *(
        scenario(
            f"ratcheting-{name}", "Kinds, Update",
            installed(version(schema=OPEN)),
            post(BOATS, boat("a", spec=before)),
            changed(version(schema=STRICT), until=tried(boat("b", spec={"a": 1})), status=422),
            get(ONE, as_="a"), put(ONE, boat(spec=after, metadata={"resourceVersion": "$rv:a"})), get(ONE),
            post(BOATS, boat("c", spec=after)),
        )
        for name, (before, after) in RATCHETED.items()
    ),
    scenario(
        "transitions", "Kinds, Update, Patch",
        installed(version(schema=TRANSITIONS)),
        post(BOATS, boat("big", spec={"a": 100})),
        post(BOATS, boat("a", spec={"a": 5, "b": "x", "tags": ["p", "q"], "parts": [{"name": "n", "size": 2}]})),
        patch(ONE, {"spec": {"a": 4}}), patch(ONE, {"spec": {"a": 6}}), patch(ONE, {"spec": {"b": "y"}}),
        patch(ONE, {"spec": {"a": 500}}), patch(ONE, {"spec": {"tags": ["q", "p"]}}), patch(ONE, {"spec": {"tags": ["q"]}}),
        patch(ONE, {"spec": {"parts": [{"name": "m", "size": 1}, {"name": "n", "size": 1}]}}),
        patch(ONE, {"spec": {"parts": [{"name": "m", "size": 0}]}}), patch(ONE, {"spec": {"a": None}}), get(ONE),
    ),
    scenario(
        "metadata-and-kind", "Kinds, Metadata",
        installed(version(schema=ruled(obj(spec=obj(a=NUMBER)), "self.metadata.name == 'a' && self.kind == 'Boat'"))),
        tried(boat("a", spec={"a": 1})), tried(boat("b", spec={"a": 1})),
    ),
    scenario(
        "type-errors-come-first", "Kinds, Status errors",
        installed(version(schema=kind("self.a > 5", a=NUMBER, b={"type": "integer", "maximum": 3}))),
        tried(boat(spec={"a": "x"})), tried(boat(spec={"a": 1, "b": 9})), tried(boat(spec={"a": None})), tried(boat()),
    ),
    scenario(
        "cost-at-run-time", "Kinds, Status errors",
        installed(version(schema=kind(
            {"rule": "self.l.all(x, self.l.all(y, y != 'none'))", "message": "dear"}, "self.l.size() > 5000",
            l={"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 3}},
        ))),
        tried(boat(spec={"l": ["x"] * 300})), tried(boat(spec={"l": ["x"] * 900})),
    ),
    scenario(
        "cost-of-elements-that-fail", "Kinds, Status errors",
        installed(version(schema=kind(
            {"rule": "self.l.all(x, self.l.all(y, int(x) > int(y)))", "message": "dear"},
            l={"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 3}},
        ))),
        tried(boat(spec={"l": ["x"] * 100})), tried(boat(spec={"l": ["x"] * 900})),
    ),
    *(
        scenario(
            f"equality-{name}", "Kinds, Update, Status errors",
            installed(version(schema=kind(a=ruled(schema, "self == oldSelf", "oldSelf == self"), b=NUMBER))),
            post(BOATS, boat("a", spec={"a": before})),
            *(
                patch(ONE, [{"op": "add", "path": "/spec", "value": {"a": after, "b": at}}], "json")
                for at, after in enumerate(afters)
            ),
            get(ONE),
        )
        for name, (schema, before, *afters) in COMPARED.items()
    ),
    *(
        scenario(
            f"union-{name}", "Kinds, Status errors",
            installed(version(schema=obj(spec=ruled(obj(a=SETS[name], b=SETS[name]), *UNIONS)))),
            *(tried(boat(spec={"a": one, "b": other})) for one, other in pairs),
        )
        for name, pairs in UNITED.items()
    ),
]  # fmt: skip
