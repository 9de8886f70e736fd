"""Short class names for the nested objects of one kind.

Guarantees
- A name is the object's own field, such as ``IssuerRef``, with as few of the fields around it as tell it apart from all
  others of the kind: ``TemplateSpec``, ``InitContainerPort``.
- A name that was given before is kept, whatever fields come or go.
- The same paths and the same kept names give the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final, TypeAlias

from steersman.codegen.names import class_name, class_part

#: The parts of a class name from the kind's own fields to the object, such as ``("Spec", "Template", "Spec")``.
Parts: TypeAlias = tuple[str, ...]

#: Fields whose name alone says nothing.
_VAGUE: Final = frozenset({"Data", "Item", "Metadata", "Ref", "Spec", "Status", "Template", "Value"})
#: So many of the fields around an object are combined to tell it apart; beyond that, its name has all of them.
_COMBINED: Final = 4


def parts_of(definition: str) -> Parts:
    """The parts of a nested object's name; its definition begins with the kind: ``Site.spec.ports[]``."""
    return tuple(class_part(step) for step in definition.split(".")[1:])


def short_names(kind: str, definitions: list[str], kept: Mapping[str, str]) -> dict[str, str]:
    """Definition -> class name for the nested objects of a kind. ``kept`` has the names of an earlier generation."""
    names: dict[str, str] = {}
    taken = {kind}
    for definition in definitions:
        name = kept.get(definition, "")
        if name and name not in taken and class_name(name, ()) == name:
            names[definition] = name
            taken.add(name)
    paths = {definition: parts_of(definition) for definition in definitions}
    alike: dict[str, list[Parts]] = {}
    for parts in paths.values():
        alike.setdefault(parts[-1] if parts else "", []).append(parts)
    for definition, parts in sorted(paths.items(), key=lambda item: (len(item[1]), item[0])):
        if definition in names or not parts:
            continue
        # A path that contains all of this one can tell itself apart by what it has beside that.
        others = [each for each in alike[parts[-1]] if not _is_within(parts[:-1], each[:-1])]
        for candidate in _candidates(kind, parts):
            free = "".join(candidate) not in taken and class_name("".join(candidate), ()) == "".join(candidate)
            if free and not any(_is_within(candidate[:-1], other[:-1]) for other in others):
                name = "".join(candidate)
                break
        else:
            name = class_name("".join((kind, *parts)), taken)
        names[definition] = name
        taken.add(name)
    return names


def _candidates(kind: str, parts: Parts) -> Iterator[Parts]:
    """Names from short to long: the last part, with the parts around it that are nearest first."""
    *around, last = parts
    if not around:
        yield (kind, last)
        return
    if last not in _VAGUE:
        yield (last,)
    places = range(len(around) - 1, -1, -1)
    for number in range(1, _COMBINED + 1):
        for chosen in combinations(places, number):
            yield (*(around[place] for place in sorted(chosen)), last)


def _is_within(some: Parts, whole: Parts) -> bool:
    """Whether all of these parts are in a path, in the same order."""
    rest = iter(whole)
    return all(part in rest for part in some)
