"""Go's regular expressions: what they match, and that no expression can take long."""

from __future__ import annotations

import contextlib
import json
import random  # noqa: TID251 - seeded, and the seed is printed
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from bench.contenders.preparing import go_program
from samples import portions
from steersman.golang.regexp.budget import INSTRUCTIONS_MAX, Budget, BudgetSpent
from steersman.golang.regexp.expressions import Expression, expression, one_budget
from steersman.golang.regexp.linear_expression import LinearExpression
from steersman.golang.regexp.parser import expression_problem, parsed
from steersman.schemas import validate_tree

#: How many random expressions are compared; designs/regular-expressions.md has the result of the long form.
COUNT = portions.count(sample=500, of=2000)

CHARACTERS = "abAkKsSß1_ -.\n\u0131\u0130\u017f\u212aéÉΩωµ😀中]^}{,:ǅ0"
CLASSES = [
    r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\pL", r"\PL", r"\p{Greek}", r"\p{^Lu}", r"\P{ll}", r"\p{letter}", r"\p{Any}", r"\P{any}",
    r"\p{Assigned}", r"\p{LC}", r"\p{ascii}", r"\pN", r"\p{Lt}", r"\p{Han}", r"\p{Cn}", r"\p{C}", ".", "[[:alpha:]]", "[[:^word:]]",
]  # fmt: skip
ESCAPES = [
    r"\n",
    r"\t",
    r"\x41",
    r"\x{17f}",
    r"\101",
    r"\.",
    r"\-",
    r"\a",
    r"\v",
    r"\\",
    r"\Qa.b\E",
    r"\x{10ffff}",
    r"\0",
]
PLACES = ["^", "$", r"\A", r"\z", r"\b", r"\B"]
GROUPS = ["(", "(", "(?:", "(?i:", "(?s:", "(?m:", "(?U:", "(?i-s:", "(?-i:", "(?im-sU:"]
REPEATS = [
    "*",
    "+",
    "?",
    "{2}",
    "{0,2}",
    "{1,}",
    "{0}",
    "{2,3}",
    "{,2}",
    "{0,}",
    "{1}",
    "*?",
    "+?",
    "??",
    "{1,2}?",
    "{,",
]
RUBBISH = ["", "*", "(", ")", "[", "]", "\\", "?", "{2}", "|", "+", "{1001}", "(?", "\\p{", "x-"]


class Grammar:
    """Random expressions, most of them legal, and texts that they may match."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def expression(self) -> str:
        made = self.part(self.chance.randint(0, 6))
        if made and self.chance.random() < 0.12:
            at = self.chance.randrange(len(made))
            made = made[:at] + self.chance.choice(RUBBISH) + made[at + self.chance.randint(0, 1) :]
        return made

    def text(self) -> str:
        return "".join(self.chance.choice(CHARACTERS) for _ in range(self.chance.choice([0, 1, 1, 2, 3, 4, 6, 9])))

    def part(self, depth: int) -> str:
        pick, roll = self.chance.choice, self.chance.random()
        if depth <= 0 or roll < 0.3:
            return self.atom()
        inner = self.part(depth - 1)
        if roll < 0.5:
            return inner + self.part(depth - 1)
        if roll < 0.62:
            return inner + "|" + self.part(depth - 1)
        if roll < 0.8:
            return pick(GROUPS) + inner + ")"
        if roll < 0.97:
            return (f"(?:{inner})" if self.chance.random() < 0.6 else inner) + pick(REPEATS)
        return pick(["(?i)", "(?s)", "(?m)", "(?U)", "(?i-m)"]) + inner

    def atom(self) -> str:
        pick, roll = self.chance.choice, self.chance.random()
        if roll < 0.55:
            return pick("abAkKsS1_ éÉΩß\u017f\u212a-😀")
        if roll < 0.7:
            return pick(CLASSES)
        if roll < 0.8:
            return pick(ESCAPES)
        return pick(PLACES) if roll < 0.9 else self.bracket()

    def bracket(self) -> str:
        pick = self.chance.choice
        members = [
            pick(
                [
                    pick("abAkKsé1_."),
                    pick("aAks0é!") + "-" + pick("zZ9ω\u017f~b"),
                    pick(CLASSES[:22]),
                    pick(["[:alpha:]", "[:^lower:]", "[:space:]", "[:upper:]"]),
                    pick(ESCAPES[:10]),
                    pick(["-", "]", "^", "[", "&&", "--", "~~", "||"]),
                ]
            )
            for _ in range(self.chance.randint(1, 4))
        ]
        return f"[{pick(['', '', '^'])}{''.join(members)}]"


def test_random_expressions_mean_what_they_mean_to_go():
    """Refused in the same words, or matching and finding the same; by our own machine, and by RE2 where it is used."""
    grammar = Grammar(seed=portions.seed_of("regular expressions"))
    asked = [{"expression": grammar.expression(), "texts": [grammar.text() for _ in range(8)]} for _ in range(COUNT)]
    program = go_program(Path(__file__).parent / "go_regexp", "go_regexp")
    ran = subprocess.run(
        [program], input="\n".join(map(json.dumps, asked)), capture_output=True, text=True, encoding="utf-8", check=True
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(asked)
    differences, accepted = [], 0
    for question, answer in zip(asked, answers, strict=True):
        text = question["expression"]
        if expression_problem(text) != answer["problem"]:
            differences.append((text, expression_problem(text), answer["problem"]))
        if expression_problem(text):
            continue
        accepted += 1
        either, own = Expression(text), LinearExpression(parsed(text))
        for sample, matches, found in zip(question["texts"], answer["matches"], answer["found"], strict=True):
            ours = (either.matches(sample), own.matches(sample, Budget()), own.find_all(sample, Budget()))
            if ours != (matches, matches, found):
                differences.append((text, sample, ours, matches, found))
    assert accepted > COUNT // 2
    assert differences == []


#: Each takes a backtracking engine years, on the text beside it.
SLOW = {
    "^(a+)+$": "a" * 10_000 + "!",
    "^(a|a)*$": "a" * 10_000 + "!",
    "^a*a*a*a*a*b$": "a" * 10_000,
    "(x+x+)+y": "x" * 10_000,
    r"^(\w+\s?)*\$$": "word " * 2_000,
    "(?i)^(K|k|\u212a)*!$": "k" * 10_000,
    "^((a?){30}){30}a{30}$": "a" * 29,
    "^(.*.*)*x$": "é" * 10_000,
    "(a|b|ab)*c": "ab" * 5_000,
}


@pytest.mark.parametrize("text", SLOW)
def test_no_expression_backtracks(text):
    """The work is counted, and grows no faster than the text."""
    sample = SLOW[text]
    assert not Expression(text).matches(sample)
    budget = Budget()
    assert not LinearExpression(parsed(text)).matches(sample, budget)
    assert INSTRUCTIONS_MAX - budget.instructions < 100_000


def test_what_costs_too_much_is_refused_and_not_done():
    """An expression with an exponential number of states: no machine is fast on it, so that the work has a bound."""
    text, sample = "(?:[ab]*a[ab]{200})c", "".join(random.Random(1).choices("ab", k=200_000))
    with pytest.raises(BudgetSpent):
        Expression(text).matches(sample)
    [problem] = validate_tree({"type": "string", "pattern": text}, sample)
    assert "is too long to be matched with" in problem.message


def test_the_patterns_of_a_schema_are_compiled_once_and_without_a_charge():
    """Each server reads the schemas of its kinds; that must not count against their objects."""

    def compile_many() -> None:
        for number in range(100_000):
            expression(f"(a{{500}}|{number})")

    with one_budget():
        with pytest.raises(BudgetSpent):
            compile_many()
        made = expression("^(a|b){900}once$", charged=False)
        assert expression("^(a|b){900}once$") is made


def test_all_patterns_of_one_object_share_a_budget():
    """A thousand dear matches are as dear as one."""
    sample = "".join(random.Random(1).choices("ab", k=20_000))
    schema = {
        "type": "object",
        "properties": {f"f{n}": {"type": "string", "pattern": f"(?:[ab]*a[ab]{{{100 + n}}})c"} for n in range(100)},
    }
    found = validate_tree(schema, {f"f{n}": sample for n in range(100)})
    assert len(found) == 100
    assert sum("is too long to be matched" in problem.message for problem in found) > 50


@pytest.mark.parametrize(
    "text", ["(?:" * 40 + "a" + "{0,20})" * 2 + ")" * 38 + "b{900}" * 30, "a" * 100_000, "[" + "\\pL" * 1000 + "]", r"(?i)[\x{0}-\x{ffff}]" * 1000]
)  # fmt: skip
def test_an_expression_too_large_is_refused_as_go_refuses_larger_ones(text):
    assert expression_problem(text).startswith("error parsing regexp: expression too large")


@pytest.mark.parametrize("text", [r"\pL" * 9000, "[[:" * 20_000, r"(?i)[\pL\pN]" * 100, "(?i)" * 10_000 + "k"])
def test_an_expression_full_of_classes_takes_no_time_to_read(text):
    """Each of them took seconds, or hundreds of megabytes, in some version."""
    tracemalloc.start()
    try:
        with contextlib.suppress(BudgetSpent, ValueError):
            Expression(text).matches("é" * 1000)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_an_expression_may_nest_as_deep_as_go_allows():
    """Python's calls may not nest so deep."""
    deep = "(" * 900 + "a*" + ")*" * 900
    assert LinearExpression(parsed("(" * 900 + "a" + ")" * 900)).matches("xa", Budget())
    assert Expression(deep).matches("b")


def test_half_a_character_is_a_character():
    """What JSON cannot hold, a program can: it is matched, and nothing fails."""
    assert Expression("^.$").matches("\ud800")
    assert not Expression("^[a-z]$").matches("\ud800")


def test_without_google_re2_all_is_the_same():
    """google-re2 is an extra: clients do without it."""
    code = (
        "import sys; sys.modules['re2'] = None\n"
        "from steersman.schemas import validate_tree\n"
        "schema = {'type': 'string', 'pattern': '^(a+)+$'}\n"
        "print(len(validate_tree(schema, 'a' * 5000)), len(validate_tree(schema, 'a' * 5000 + '!')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == ["0", "1"]


def test_nothing_loads_google_re2_before_a_pattern_is_matched():
    code = "import sys, steersman.schemas\nprint('re2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == ["False"]
