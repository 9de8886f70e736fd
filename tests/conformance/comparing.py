"""The difference of two trees, path by path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two answers differ."""

    path: str
    reference: Any
    subject: Any


def differences(reference: Any, subject: Any, path: str = "") -> list[Difference]:
    """All places where two trees differ; 1, 1.0 and true are three different things."""
    if type(reference) is not type(subject):
        return [Difference(path or ".", reference, subject)]
    if isinstance(reference, dict):
        found: list[Difference] = []
        for key in [*reference, *(key for key in subject if key not in reference)]:
            here = f"{path}.{key}" if str(key).isidentifier() else f"{path}[{key!r}]"
            if key not in subject:
                found.append(Difference(here, reference[key], ABSENT))
            elif key not in reference:
                found.append(Difference(here, ABSENT, subject[key]))
            else:
                found.extend(differences(reference[key], subject[key], here))
        return found
    if isinstance(reference, list):
        found = []
        for index in range(max(len(reference), len(subject))):
            here = f"{path}[{index}]"
            if index >= len(subject):
                found.append(Difference(here, reference[index], ABSENT))
            elif index >= len(reference):
                found.append(Difference(here, ABSENT, subject[index]))
            else:
                found.extend(differences(reference[index], subject[index], here))
        return found
    return [] if reference == subject else [Difference(path or ".", reference, subject)]
