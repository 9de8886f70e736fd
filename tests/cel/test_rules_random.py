"""Random expressions of right types: the engine takes those that we take, and says the same of objects.

`samples.portions` says how many are tried, and which; a failure names the expression.
"""

from __future__ import annotations

import re
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from samples import portions
from steersman.cel import compile_rules

COUNT = portions.count(sample=30, of=150)
SEED = portions.seed_of("CEL")
GROUP = "celrandom.example.com"
TEXT: dict[str, Any] = {"type": "string", "maxLength": 20}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": TEXT,
        "t": TEXT,
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
        "lasts": {"type": "string", "format": "duration"},
        "texts": {"type": "array", "maxItems": 5, "items": TEXT},
        "set": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": TEXT},
        "numbers": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": TEXT},
        "o": {"type": "object", "properties": {"a": TEXT, "x-y": {"type": "integer"}}},
    },
}
FULL = {
    "s": "hello",
    "t": "1.5",
    "i": 7,
    "j": -3,
    "n": 2.5,
    "b": True,
    "either": "5%",
    "when": "2024-02-29T12:34:56Z",
    "lasts": "90m",
    "texts": ["a", "b", "b"],
    "set": ["b", "a"],
    "numbers": [1, 2, 5],
    "m": {"a": "x"},
    "o": {"a": "aa", "x-y": 4},
}
BARE = {"s": "", "i": 0, "j": 9223372036854775807, "b": False, "either": 12, "texts": [], "m": {}}
#: By type: what an expression of it can be. In braces stand types; ``$v:TYPE`` is a variable for what follows.
GRAMMAR: dict[str, list[str]] = {
    "bool": [
        "true", "false", "self.b", "has(self.o.a)", "has(self.m.a)", "({bool} && {bool})", "({bool} || {bool})", "!({bool})",
        "({bool} ? {bool} : {bool})", "({int} < {int})", "({int} >= {double})", "({text} == {text})", "({text} < {text})",
        "({texts} == {texts})", "({ints} != {ints})", "({any} == {any})", "({text} in {texts})", "({int} in {ints})",
        "({text} in self.m)", "({when} > {when})", "({length} <= {length})", "{text}.startsWith({text})", "{text}.contains({text})",
        "{text}.matches('^[a-z]+$')", "{texts}.all($v:text, {bool})", "{texts}.exists($v:text, {bool})",
        "{ints}.exists_one($v:int, {bool})", "{ints}.all($i:int, $v:int, {bool})", "self.m.all($k:text, {bool})",
        "{maybe}.hasValue()", "{ints}.isSorted()", "sets.contains({texts}, {texts})", "isIP({text})", "isQuantity({text})",
        "quantity({text}).isLessThan(quantity('2'))", "format.dns1123Label().validate({text}).hasValue()", "isSemver({text})",
    ],
    "int": [
        "0", "1", "-3", "7", "self.i", "self.j", "self.o.x__dash__y", "({int} + {int})", "({int} - {int})", "({int} * {int})",
        "({int} / {int})", "({int} % {int})", "size({text})", "{texts}.size()", "int({double})", "int({text})", "{ints}.sum()",
        "{ints}.min()", "{ints}[{int}]", "{text}.indexOf({text})", "{texts}.lastIndexOf({text})", "{when}.getHours()",
        "{length}.getMinutes()", "({bool} ? {int} : {int})", "{maybe}.optMap($v:text, {int}).orValue(0)",
    ],
    "double": ["0.0", "1.5", "self.n", "({double} + {double})", "({double} / {double})", "double({int})", "double({text})"],
    "text": [
        "''", "'a'", "'10.0.0.1'", "'é'", "self.s", "self.t", "self.o.a", "self.m.a", "{texts}[{int}]", "self.m[{text}]",
        "({text} + {text})", "string({int})", "string({double})", "string({when})", "string({length})", "{text}.upperAscii()",
        "{text}.substring({int})", "{text}.replace('a', 'bb')", "{text}.find('[a-z]+')", "{texts}.join('-')", "{maybe}.value()",
        "'%s|%d'.format([{any}, {int}])", "({bool} ? {text} : {text})", "{maybe}.orValue({text})", "{texts}.max()",
    ],
    "texts": [
        "['a']", "['x', 'b']", "self.texts", "self.set", "({texts} + {texts})", "{texts}.filter($v:text, {bool})",
        "{ints}.map($v:int, {text})", "{text}.split('')", "{texts}.reverse()", "{texts}.slice(0, {int})", "self.m.map($k:text, $k)",
    ],
    "ints": [
        "[1, 2]", "self.numbers", "({ints} + {ints})", "{ints}.filter($v:int, {bool})", "{texts}.map($v:text, {int})",
        "{ints}.transformList($i:int, $v:int, {int})", "lists.range(3)",
    ],
    "when": ["self.when", "timestamp('2020-01-01T00:00:00Z')", "({when} + {length})"],
    "length": ["self.lasts", "duration('1h')", "({length} - {length})", "({when} - {when})"],
    "maybe": ["optional.none()", "optional.of({text})", "self.?o.a", "self.m[?{text}]", "{texts}.first()", "{texts}[?{int}]"],
    "any": ["self.either", "dyn({int})", "dyn({text})", "dyn({texts})", "({any} + {any})", "dyn({double})"],
}  # fmt: skip
_HOLE = re.compile(r"\{(\w+)\}|\$(\w+):(\w+)|\$(\w+)")


class Writer:
    """Writes expressions."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._names = 0

    def write(self, kind: str, depth: int, known: dict[str, str]) -> str:
        """An expression of a type, with variables of types that may stand in it."""
        fitting = [name for name, type_ in known.items() if type_ == kind]
        if fitting and self._chance.random() < 0.4:
            return self._chance.choice(fitting)
        forms = GRAMMAR[kind]
        plain = [form for form in forms if "{" not in form and "$" not in form]
        form = self._chance.choice(forms if depth > 0 else plain or forms)
        inner, renamed = dict(known), dict[str, str]()

        def fill(found: re.Match[str]) -> str:
            hole, new, type_, again = found.groups()
            if hole:
                return self.write(hole, depth - 1, inner)
            if again:
                return renamed[again]
            self._names += 1
            renamed[new] = f"{new}{self._names}"
            inner[renamed[new]] = type_
            return renamed[new]

        return _HOLE.sub(fill, form)


def affordable(expression: str) -> bool:
    """Whether a definition with many of its like is still taken; what else we refuse would be a mistake of the grammar."""
    rules, problems = compile_rules(SCHEMA | {"x-kubernetes-validations": [{"rule": expression}]})
    taken = ("exceeds", "contributed", "program instantiation failed")
    assert all(any(word in found.message for word in taken) for found in problems), (expression, problems)
    return not problems and rules.root is not None and rules.root.rules[0].expression.cost < 100_000


async def test_random_expressions_mean_the_same_to_both(server):
    writer = Writer(SEED)
    expressions: list[str] = []
    while len(expressions) < COUNT:
        made = writer.write("bool", 3, {})
        if len(made) < 600 and made not in expressions and affordable(made):
            expressions.append(made)
    schema = SCHEMA | {"x-kubernetes-validations": [{"rule": each} for each in expressions]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "chances", "singular": "chance", "kind": "Chance"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"chances.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await server.install(crd)
    rules, problems = compile_rules(schema)
    assert problems == []
    for tree in (FULL, BARE):
        whole = {"apiVersion": f"{GROUP}/v1", "kind": "Chance", "metadata": {"name": "one"}} | tree
        theirs = [cause["message"] for cause in await server.verdict(crd, whole)]
        ours = [found.message for found in rules.problems(whole)]
        assert ours == theirs, f"seed {SEED}"
