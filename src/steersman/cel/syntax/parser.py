"""The parser of CEL: text -> tree of nodes, with macros expanded.

Guarantees
- Everything that Google's parser accepts, with optional syntax on, becomes the same tree, with nodes at the same
  positions.
- A syntax error gives issues with a position and a message. The message is the server's for common mistakes (an end too
  early, an extra token, a reserved name), and has its form otherwise.
- An expression that is nested too deeply is an issue. kube-apiserver's limit is 250; brackets may have less here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Final

from steersman.cel.syntax.macros import expanded
from steersman.cel.syntax.nodes import Call, Ident, ListOf, Literal, MapOf, Node, Select, Struct, children
from steersman.cel.syntax.source import TOO_DEEP, Issue, Refused, Source, Token, unescaped
from steersman.cel.values import Uint

_RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905
)
_RELATIONS: Final = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_DEPTH_MAX: Final = 250
_BEYOND: Final = Issue(-1, f"expression recursion limit exceeded: {_DEPTH_MAX}")
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 4000
_UINT_MAX: Final = 2**64 - 1
#: The tokens that may begin an expression, as the server lists them.
_BEGINNINGS: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def parse(text: str, *, plain: bool = False) -> tuple[Node | None, list[Issue]]:
    """Parse an expression. The node is None if there are issues. ``plain`` turns macros and optional syntax off."""
    tokens, issues = Source(text).tokens()
    parser = _Parser(tokens, plain=plain)
    try:
        node = parser.expression()
        parser.end()
    except Refused as refused:
        return None, [*issues, refused.issue]
    except RecursionError:
        return None, [*issues, _BEYOND if _nesting(tokens) >= _DEPTH_MAX else TOO_DEEP]
    if not issues and _is_too_deep(node):
        issues.append(TOO_DEEP)
    return (None, issues) if issues else (node, [])


def _nesting(tokens: list[Token]) -> int:
    """How many brackets are open at most."""
    signs = (token.text for token in tokens if token.kind == "sign")
    return max(accumulate((sign in "([{") - (sign in ")]}") for sign in signs), default=0)


def _is_too_deep(root: Node) -> bool:
    """Whether a tree has more levels than the server accepts, such as a long chain of ``+``."""
    level = [root]
    for _ in range(_DEPTH_MAX + 1):
        level = [inner for node in level for inner in children(node)]
        if not level:
            return False
    return True


class _Parser:
    def __init__(self, tokens: list[Token], *, plain: bool) -> None:
        self._tokens = tokens
        self._plain = plain
        self._next = 0
        self._depth = 0

    def end(self) -> None:
        """Report an issue if anything follows."""
        token = self._tokens[self._next]
        if token.kind == "end":
            return
        # The server distinguishes one extra token from an expression that ended too early.
        wrong = "extraneous" if self._tokens[self._next + 1].kind == "end" else "mismatched"
        raise Refused(token.at, f"Syntax error: {wrong} input '{token.text}' expecting <EOF>")

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise Refused(*_BEYOND)
        node = self._any_of()
        if asked := self._take("?"):
            then = self._any_of()
            self._expect(":")
            node = Call(asked.at, "_?_:_", [node, then, self.expression()])
        self._depth -= 1
        return node

    def _any_of(self) -> Node:
        return self._logical("||", "_||_", self._all_of)

    def _all_of(self) -> Node:
        return self._logical("&&", "_&&_", self._relation)

    def _logical(self, sign: str, function: str, term: Callable[[], Node]) -> Node:
        terms = [term()]
        at = -1
        while token := self._take(sign):
            at = token.at if at < 0 else at
            terms.append(term())
        return Call(at, function, terms) if len(terms) > 1 else terms[0]

    def _relation(self) -> Node:
        node = self._sum()
        while (token := self._tokens[self._next]).kind == "sign" and token.text in _RELATIONS:
            self._next += 1
            function = "@in" if token.text == "in" else f"_{token.text}_"
            node = Call(token.at, function, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while token := self._take("+", "-"):
            node = Call(token.at, f"_{token.text}_", [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while token := self._take("*", "/", "%"):
            node = Call(token.at, f"_{token.text}_", [node, self._unary()])
        return node

    def _unary(self) -> Node:
        token = self._tokens[self._next]
        if token.kind != "sign" or token.text not in "!-":
            return self._member()
        signs = 1
        while self._tokens[self._next + signs][:2] == ("sign", token.text):
            signs += 1
        if token.text == "-" and signs == 1 and self._tokens[self._next + 1].kind in {"int", "float"}:
            return self._member()
        self._next += signs
        node = self._member()
        return Call(token.at, f"{token.text}_", [node]) if signs % 2 else node

    def _member(self) -> Node:
        node = self._primary()
        while token := self._take(".", "["):
            node = self._selected(node, token) if token.text == "." else self._indexed(node, token)
        return node

    def _optional(self, before: Token) -> bool:
        """Whether a ``?`` makes what follows optional."""
        found = self._take("?") is not None
        if found and self._plain:
            raise Refused(before.at, f"unsupported syntax '{before.text}?'")
        return found

    def _selected(self, node: Node, dot: Token) -> Node:
        optional = self._optional(dot)
        name = self._tokens[self._next]
        if name.kind == "escaped":
            self._next += 1
            field = name.text[1:-1]
            return Call(dot.at, "_?._", [node, Literal(name.at, field)]) if optional else Select(dot.at, node, field)
        if name.kind != "name":
            expected = "IDENTIFIER" if name.kind == "sign" and name.text in {"true", "false", "null"} else ""
            if expected:
                raise Refused(name.at, f"Syntax error: mismatched input '{name.text}' expecting IDENTIFIER")
            shown = "" if name.kind == "end" else name.space + name.text
            raise Refused(name.at, f"Syntax error: no viable alternative at input '.{shown}'")
        self._next += 1
        if optional:
            return Call(dot.at, "_?._", [node, Literal(name.at, name.text)])
        if opened := self._take("("):
            return self._call(opened.at, name.text, self._arguments(), node)
        return Select(dot.at, node, name.text)

    def _indexed(self, node: Node, opened: Token) -> Node:
        optional = self._optional(opened)
        index = self.expression()
        self._expect("]")
        return Call(opened.at, "_[?_]" if optional else "_[_]", [node, index])

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        if self._take(")"):
            return args
        if (token := self._tokens[self._next]).kind == "end":
            expected = _BEGINNINGS.replace("'(', ", "'(', ')', ")
            raise Refused(token.at, f"Syntax error: mismatched input '<EOF>' expecting {expected}")
        while True:
            args.append(self.expression())
            if not self._take(","):
                break
        self._expect(")")
        return args

    def _call(self, at: int, function: str, args: list[Node], target: Node | None = None) -> Node:
        macro = None if self._plain else expanded(at, function, args, target)
        return macro or Call(at, function, args, target)

    def _primary(self) -> Node:
        token = self._tokens[self._next]
        match token.kind:
            case "int" | "uint" | "float" | "string" | "bytes":
                self._next += 1
                return _literal(token, token.at)
            case "name":
                return self._named("")
            case "sign":
                return self._bracketed(token)
            case _:
                raise self._unexpected(token)

    def _bracketed(self, token: Token) -> Node:  # noqa: PLR0911 - one answer for each kind
        self._next += 1
        match token.text:
            case "(":
                node = self.expression()
                self._expect(")")
                return node
            case "[":
                return self._list(token.at)
            case "{":
                return self._map(token.at)
            case "true" | "false":
                return Literal(token.at, token.text == "true")
            case "null":
                return Literal(token.at, None)
            case "." if self._tokens[self._next].kind == "name":
                return self._named(".")
            case "-" if self._tokens[self._next].kind in {"int", "float"}:
                self._next += 1
                return _literal(self._tokens[self._next - 1], token.at, negative=True)
            case _:
                raise self._unexpected(token)

    def _named(self, leading: str) -> Node:
        token = self._tokens[self._next]
        self._next += 1
        struct = self._struct(token, leading)
        if struct is not None:
            return struct
        if token.text in _RESERVED:
            raise Refused(token.at, f"reserved identifier: {token.text}")
        if opened := self._take("("):
            return self._call(opened.at, leading + token.text, self._arguments())
        return Ident(token.at, leading + token.text)

    def _struct(self, first: Token, leading: str) -> Node | None:
        """``a.b.C{...}``; None, with nothing consumed, for anything else."""
        names, ahead = [first.text], self._next
        while self._tokens[ahead][:2] == ("sign", ".") and self._tokens[ahead + 1].kind == "name":
            names.append(self._tokens[ahead + 1].text)
            ahead += 2
        if self._tokens[ahead][:2] != ("sign", "{"):
            return None
        at = self._tokens[ahead].at
        self._next = ahead + 1
        fields: list[tuple[int, str, Node, bool]] = []
        while not self._take("}"):
            optional = self._take("?") is not None
            name = self._tokens[self._next]
            self._next += 1
            colon = self._expect(":")
            fields.append((colon.at, name.text, self.expression(), optional))
            if not self._take(","):
                self._expect("}")
                break
        return Struct(at, leading + ".".join(names), fields)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._take("]"):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._take(","):
                self._expect("]")
                break
        return ListOf(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._take("}"):
            optional = self._take("?") is not None
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
            if not self._take(","):
                self._expect("}")
                break
        return MapOf(at, entries)

    def _take(self, *signs: str) -> Token | None:
        token = self._tokens[self._next]
        if token.kind == "sign" and token.text in signs:
            self._next += 1
            return token
        return None

    def _expect(self, sign: str) -> Token:
        token = self._take(sign)
        if token is None:
            found = self._tokens[self._next]
            if found.kind == "end" and sign == ")" and self._open() == 1:
                raise Refused(found.at, "Syntax error: missing ')' at '<EOF>'")
            expected = f"{{'{sign}', ','}}" if sign in "]}" else f"'{sign}'"
            # The server skips one token if the expected one follows.
            is_extra = found.kind != "end" and self._tokens[self._next + 1][:2] == ("sign", sign)
            wrong = "extraneous" if is_extra else "mismatched"
            raise Refused(found.at, f"Syntax error: {wrong} input '{_shown(found)}' expecting {expected}")
        return token

    def _open(self) -> int:
        """How many brackets are open at the end of the text."""
        signs = [token.text for token in self._tokens if token.kind == "sign"]
        return sum((sign in "([{") - (sign in ")]}") for sign in signs)

    def _unexpected(self, token: Token) -> Refused:
        after = self._tokens[self._tokens.index(token) + 1 :]
        if token.kind in {"end", "escaped"} or not after or after[0].kind == "end":
            return Refused(token.at, f"Syntax error: mismatched input '{_shown(token)}' expecting {_BEGINNINGS}")
        return Refused(token.at, f"Syntax error: extraneous input '{_shown(token)}' expecting {_BEGINNINGS}")


def _shown(token: Token) -> str:
    return "<EOF>" if token.kind == "end" else token.text


def _whole(text: str) -> int:
    """An integer. With more digits than Python can convert, one that is too large as well."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if len(text) <= _DIGITS_MAX else 10**_DIGITS_MAX


def _literal(token: Token, at: int, *, negative: bool = False) -> Literal:
    text = token.text
    match token.kind:
        case "int":
            value = _whole(text) * (-1 if negative else 1)
            if not _INT_MIN <= value <= _INT_MAX:
                raise Refused(at, "invalid int literal")
            return Literal(at, value)
        case "uint":
            value = _whole(text[:-1])
            if value > _UINT_MAX:
                raise Refused(at, "invalid uint literal")
            return Literal(at, Uint(value))
        case "float":
            number = float(text) * (-1 if negative else 1)
            if number in {float("inf"), float("-inf")}:
                raise Refused(at, "invalid double literal")
            return Literal(at, number)
        case kind:
            try:
                return Literal(at, unescaped(text if kind == "string" else text[1:], as_bytes=kind == "bytes"))
            except ValueError as error:
                raise Refused(at, str(error)) from error
