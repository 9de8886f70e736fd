"""Calls of one function joined by ``||``, with kube-apiserver's messages about other expressions."""

import pytest

from steersman.cel import NotDisjunction, disjoined_calls

BEGINNINGS = "'-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"


def test_the_calls_come_in_the_order_of_the_text():
    calls = [*disjoined_calls("f(a.b, 'x') || (f(1, 'y') || f(g(), 'z')) // end", "f")]
    assert [call[1].text for call in calls] == ["x", "y", "z"]
    assert [call[0].path for call in calls] == ["a.b", None, None]
    assert [call[0].literal_type for call in calls] == ["", "int64", ""]


def test_a_call_is_read_before_the_next():
    """The first mistake of the text is the one that is reported."""
    calls = disjoined_calls("f(1) || g()", "f")
    assert next(calls)[0].literal_type == "int64"
    with pytest.raises(NotDisjunction, match='unsupported function "g"'):
        next(calls)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "unexpected expression kind 3; expected f() call or || operator"),
        ("f() && f()", 'unsupported function "_&&_"; only f() and || are allowed'),
        ("[" * 400 + "]" * 400, "CEL parse error: expression recursion limit exceeded: 250"),
        ("a" + ".b" * 400, "CEL parse error: max recursion depth exceeded"),
        ("has(a.b)", 'unsupported function "has"; only f() and || are allowed'),
        ("a.?b", "CEL parse error: unsupported syntax '.?'"),
        ("a[?0]", "CEL parse error: unsupported syntax '[?'"),
        ("f('a' 'b')", "CEL parse error: Syntax error: extraneous input ''b'' expecting ')'"),
        (
            "f(",
            f"CEL parse error: Syntax error: mismatched input '<EOF>' expecting {{'[', '{{', '(', ')', '.', {BEGINNINGS}",
        ),
        ("(f()", "CEL parse error: Syntax error: missing ')' at '<EOF>'"),
        ("((f()", "CEL parse error: Syntax error: mismatched input '<EOF>' expecting ')'"),
        ("f(;)", "CEL parse error: Syntax error: token recognition error at: ';'"),
    ],
)
def test_other_expressions_are_explained_in_the_servers_words(text, said):
    """As kube-apiserver 1.36.3 says it; the conformance suite asks it again, about shard selectors."""
    with pytest.raises(NotDisjunction) as refused:
        [*disjoined_calls(text, "f")]
    assert str(refused.value) == said
