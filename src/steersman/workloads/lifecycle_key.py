"""The lifecycle key of a persistent workload: equal keys mean that the running process can be used again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from steersman.objects import encode
from steersman.workloads.kinds import ExecutableSpec, ExecutableTemplate

#: The fields of a spec that a program starts with; a change of any of them needs another process.
_LAUNCHED_WITH = ("executablePath", "workingDirectory", "args", "ambientEnvironment", "pemCertificates", "terminal")


def lifecycle_key(spec: ExecutableSpec, files: Mapping[str, Mapping[str, str]]) -> str:
    """The explicit key of a spec, or a hash of everything that the program starts with.

    ``files`` has the variables of each file, so that an edited file gives another key. The order of variables
    does not matter; the order of files does, because later ones win.
    """
    if spec.lifecycle_key:
        return spec.lifecycle_key
    tree = msgspec.json.decode(encode(spec))
    launched: dict[str, object] = {name: tree[name] for name in _LAUNCHED_WITH if tree.get(name) is not None}
    if spec.steersman is not None and spec.steersman.user is not None:
        launched["user"] = spec.steersman.user
    launched["env"] = sorted((variable.name, variable.value) for variable in spec.env or ())
    launched["envFiles"] = [files[path] for path in spec.env_files or ()]
    return hashlib.sha256(msgspec.json.encode(launched, order="sorted")).hexdigest()[:32]


def template_hash(template: ExecutableTemplate) -> str:
    """A short hash of a template, for the names of the Executables that it makes."""
    tree = msgspec.json.decode(encode(template))
    return hashlib.sha256(msgspec.json.encode(tree, order="sorted")).hexdigest()[:8]
