"""Splits a command string into words as Compose does: with quotes and backslashes, without a shell."""

from __future__ import annotations

import re

#: One part of a word: a template, an escape, a quoted text, or a run of other characters.
_PART = re.compile(
    r"(?P<template>\{\{.{0,200}?\}\})|\\(?P<escape>.)|'(?P<single>[^']*)'|\"(?P<double>(?:\{\{.{0,200}?\}\}|[^\"\\]|\\.)*)\""
    r"|`(?P<back>[^`]*)`|\$\((?P<substitution>[^)]*)\)|(?P<plain>[^\s\\'\"`;&|<>(){$]+|[{$])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n"}
_ENDS = ";&|<>"
#: A variable or a substitution, which only a shell replaces.
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\}?|\([^)]*\)?)")
#: The kernel accepts no longer argument.
_CHARACTERS_MAX = 128 * 1024


def split_words(text: str) -> tuple[list[str], str]:
    """The words, and the rest that Compose drops: everything from an unquoted ``; & | < >`` on.

    A template ``{{...}}`` is never split. Raises ValueError if a quote is not closed, or if the text is too long.
    """
    if len(text) > _CHARACTERS_MAX:
        raise ValueError(f"a command has at most {_CHARACTERS_MAX} characters")
    words: list[str] = []
    parts: list[str] = []
    in_word = False
    at = 0
    while at < len(text):
        letter = text[at]
        if letter.isspace():
            if in_word:
                words.append("".join(parts))
                parts, in_word = [], False
            at += 1
            continue
        if letter in _ENDS:
            # The digit of a redirection such as 2> is not a word.
            if letter == ">" and in_word and parts[:1] and parts[0][:1].isdigit():
                in_word = False
            break
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"the {letter} at character {at + 1} is not closed")
        parts.append(_value(part))
        in_word = True
        at = part.end()
    if in_word:
        words.append("".join(parts))
    return words, text[at:]


def shell_variable(text: str) -> str:
    """The first unquoted variable or substitution of a command string, such as ``$PORT`` or ``$(id)``; empty without one.

    Quoted ones may be for a shell that the command starts: ``sh -c 'echo $PORT'``.
    """
    at = 0
    while at < len(text):
        if text[at].isspace() or text[at] in _ENDS:
            at += 1
            continue
        if found := _VARIABLE.match(text, at):
            return found[0]
        part = _PART.match(text, at)
        if part is None:
            return ""
        at = part.end()
    return ""


def _value(part: re.Match[str]) -> str:
    if part["escape"] is not None:
        return _ESCAPES.get(part["escape"], part["escape"])
    if part["single"] is not None:
        return part["single"]
    if part["double"] is not None:
        return _ESCAPED.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), part["double"])
    return part[0]
