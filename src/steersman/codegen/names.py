"""Python names for API names.

Guarantees
- A field's Python name is a legal identifier, never a keyword, and never hides a name that the generated class needs.
- The same API name gets the same Python name in every class, unless two names of one class collide: then the one that is
  its own Python name keeps it, and the other gets a number.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

#: Names used by annotations and field values in a generated class; a field of that name would hide them.
_USED_IN_BODIES = frozenset({"bool", "bytes", "datetime", "dict", "field", "float", "frozenset", "int", "list", "str"})
#: Names of the constructor's own parameters.
_USED_BY_CALLS = frozenset({"cls", "self"})
#: Attributes that `steersman.objects.Struct` gives to every class.
_USED_BY_STRUCTS = frozenset({"only"})
_USED_ANYWHERE = _USED_IN_BODIES | _USED_BY_CALLS | _USED_BY_STRUCTS
#: Attributes that `steersman.objects.Object` adds to those of every kind.
_USED_BY_OBJECTS = frozenset({"gvk", "gvr", "key", "uid", "generation", "deleting", "api_version", "kind", "metadata"})
#: Names from other modules that generated classes need; a class of that name gets an underscore.
RESERVED_CLASSES = frozenset({"Annotated", "Any", "ClassVar", "Literal", "None", "True", "False"})

#: Nouns whose plural is their singular.
_SAME_IN_BOTH = ("Series", "series", "Species", "species")
_PLURALS_IN_ES = ("sses", "xes", "ches", "shes", "tuses", "iases")
_ENDS_IN_E = ("aches",)

_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
#: ``IPs``, ``CIDRs``, ``URLs``: the plural s belongs to the capitals before it.
_PLURAL_CAPITALS = re.compile(r"([A-Z]{2,})s(?=[A-Z]|$)")
#: ``APIV3``: a version is a word.
_CAPITALS_THEN_VERSION = re.compile(r"([A-Z])(V[0-9])")
_CAPITALS_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_THEN_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")


def snake_case(wire: str) -> str:
    """A wire name in snake case: ``podIP`` -> ``pod_ip``, ``clusterIPs`` -> ``cluster_ips``, ``$ref`` -> ``ref``."""
    text = _NOT_A_WORD.sub("_", wire).strip("_")
    text = _PLURAL_CAPITALS.sub(lambda found: found[1].capitalize() + "s", text)
    text = _CAPITALS_THEN_VERSION.sub(r"\1_\2", text)
    text = _CAPITALS_THEN_WORD.sub(r"\1_\2", text)
    return re.sub("_+", "_", _WORD_THEN_CAPITAL.sub(r"\1_\2", text)).lower()


def field_name(wire: str, *, of_kind: bool = False) -> str:
    """The Python name of a field; ``of_kind`` for the fields of a whole object."""
    name = snake_case(wire)
    if not name or name[0].isdigit():
        name = f"field_{name}".rstrip("_")
    taken = name in _USED_ANYWHERE or (of_kind and name in _USED_BY_OBJECTS)
    return f"{name}_" if taken or keyword.iskeyword(name) else name


def field_names(wires: Iterable[str], *, of_kind: bool = False) -> dict[str, str]:
    """Wire name -> Python name for all fields of one class, without duplicates."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    # A wire name that is its own Python name comes first: `ref` keeps its name next to `$ref`.
    for wire in sorted(wires, key=lambda wire: (field_name(wire, of_kind=of_kind) != wire, wire)):
        name = plain = field_name(wire, of_kind=of_kind)
        number = 2
        while name in taken:
            name = f"{plain.rstrip('_')}_{number}"
            number += 1
        taken.add(name)
        names[wire] = name
    return names


def pascal_case(wire: str) -> str:
    """A wire name as part of a class name: ``issuerRef`` -> ``IssuerRef``."""
    return "".join(part[:1].upper() + part[1:] for part in _NOT_A_WORD.split(wire))


def singular(name: str) -> str:
    """The name of one item of a list: ``Ports`` -> ``Port``, ``Policies`` -> ``Policy``, ``Data`` -> ``DataItem``."""
    if name.endswith(_SAME_IN_BOTH):
        return f"{name}Item"
    if name.endswith("ies") and len(name) > 4:
        return f"{name[:-3]}y"
    if name.endswith(_PLURALS_IN_ES) and not name.endswith(_ENDS_IN_E):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is")) and len(name) > 2:
        return name[:-1]
    return f"{name}Item"


def class_part(step: str) -> str:
    """The part of a class name for a step of a path: ``ports[]`` is one of many, a ``Port``."""
    name = pascal_case(step.rstrip("[]"))
    for _ in range(step.count("[]")):
        name = singular(name)
    return name


def class_name(wanted: str, taken: Iterable[str]) -> str:
    """A class name similar to ``wanted`` that is legal and not in ``taken``."""
    name = pascal_case(wanted) or "Model"
    if name[0].isdigit():
        name = f"Model{name}"
    if name in RESERVED_CLASSES or keyword.iskeyword(name):
        name = f"{name}_"
    occupied = set(taken)
    plain, number = name, 2
    while name in occupied:
        name = f"{plain.rstrip('_')}{number}"
        number += 1
    return name


#: Groups with dots that kube-apiserver itself serves, in any version.
_KUBERNETES_NAMES = """
    admissionregistration apiextensions apiregistration authentication authorization certificates coordination
    discovery events flowcontrol.apiserver internal.apiserver meta networking node rbac.authorization resource
    scheduling storage storagemigration
"""
_KUBERNETES_GROUPS = frozenset(f"{name}.k8s.io" for name in _KUBERNETES_NAMES.split())


def module_name(group: str, version: str) -> str:
    """The module of a group-version: ``core_v1``, ``apps_v1``, ``rbac_v1``, ``cert_manager_io_v1``.

    Groups of Kubernetes itself use only their first label. Any other group keeps its whole name, because two owners may
    choose the same first label.
    """
    if not group:
        short = "core"
    elif "." not in group or group in _KUBERNETES_GROUPS:
        short = group.partition(".")[0]
    else:
        short = group
    name = _NOT_A_WORD.sub("_", f"{short}_{version}").strip("_").lower()
    return f"group_{name}" if name[0].isdigit() else name
