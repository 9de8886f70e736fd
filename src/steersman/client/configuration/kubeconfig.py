"""Kubeconfig files, merged as kubectl merges them.

- The first file that names a cluster, a user or a context provides all of it; later entries with the same name are
  ignored. The first non-empty ``current-context`` wins. Missing files in a list are skipped.
- A relative file name is relative to the directory of its kubeconfig.
- Every faulty file (broken YAML, a wrong type, an alias bomb, eight megabytes of noise, a pipe without a writer) is a
  ConfigError in bounded time. The error names the file, the entry and the fault, and contains no secret.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from steersman.client.configuration.bounded_file import read_bounded_file, reason
from steersman.client.configuration.config import Config
from steersman.client.configuration.kubeconfig_entry import Entry, quoted, type_name
from steersman.client.configuration.kubeconfig_identity import build_config
from steersman.client.configuration.secrecy import printable
from steersman.errors import ConfigError

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_FILE_LIMIT = 8 << 20
_NAMES_SHOWN = 20

# The lists of a kubeconfig and the field of their elements that holds the entry.
_SECTIONS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))


@dataclass(frozen=True, slots=True, repr=False)
class Kubeconfig:
    """One or more kubeconfig files, merged. `files` exist; `missing` do not."""

    current_context: str
    clusters: dict[str, Entry]
    users: dict[str, Entry]
    contexts: dict[str, Entry]
    files: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Kubeconfig of {self._place()}: {self._known_contexts()}>"

    @property
    def is_empty(self) -> bool:
        """Whether it has no contexts, as after removing the last cluster."""
        return not self.contexts and not self.current_context

    def config(self, context: str | None = None) -> Config:
        """Return the configuration of `context`, by default the current context."""
        name = context or self.current_context
        if not name:
            raise ConfigError(
                f'{self._place()}: no current-context is set; pass context="NAME". {self._known_contexts()}'
            )
        chosen = self.contexts.get(name)
        if chosen is None:
            asked = "context" if context else "current-context"
            raise ConfigError(f"{self._place()}: {asked} {quoted(name)} does not exist. {self._known_contexts()}")
        cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
        if not cluster_name:
            raise chosen.error("no cluster is set; set one with `kubectl config set-context NAME --cluster=CLUSTER`")
        cluster = self.clusters.get(cluster_name)
        if cluster is None:
            raise chosen.error(
                f"its cluster {quoted(cluster_name)} does not exist. {_known('clusters', self.clusters)}"
            )
        user = self.users.get(user_name)
        if user is None and user_name:
            raise chosen.error(f"its user {quoted(user_name)} does not exist. {_known('users', self.users)}")
        return build_config(name, chosen, cluster=cluster, user=user, files=self.files)

    def _place(self) -> str:
        return ", ".join(printable(file, limit=400) for file in self.files) or "the kubeconfig"

    def _known_contexts(self) -> str:
        return _known("contexts", self.contexts)


def load_kubeconfig(paths: Paths | None = None, *, context: str | None = None) -> Config:
    """Return the configuration of a context, or of the current one.

    `paths` is one file, which must exist, or several to merge, of which at least one must exist. By default it reads
    the files in ``KUBECONFIG``, or ``~/.kube/config`` if that is not set.
    """
    kubeconfig = read_kubeconfig(paths)
    if not kubeconfig.files:
        raise ConfigError(f"no kubeconfig: {', '.join(kubeconfig.missing) or 'no file was given'}: no such file")
    if kubeconfig.is_empty and not context:
        raise ConfigError(f"{', '.join(kubeconfig.files)}: no contexts; add one with `kubectl config set-context`")
    return kubeconfig.config(context)


def parse_kubeconfig(text: str | bytes, *, context: str | None = None) -> Config:
    """Return the configuration in the text of a kubeconfig, such as one kept in a Secret.

    The text may come from an untrusted source, which must not read our files or run programs: fields that name a file,
    and exec plugins, are errors.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > _FILE_LIMIT:
        raise ConfigError(f"the kubeconfig is longer than {_FILE_LIMIT} bytes")
    return _merge([_parse(data, None)], missing=()).config(context)


def read_kubeconfig(paths: Paths | None = None) -> Kubeconfig:
    """Read and merge kubeconfig files as `load_kubeconfig` does, without choosing a context."""
    if isinstance(paths, str | os.PathLike):
        # A Path would lose a leading "./", which messages should show.
        named: str = os.fspath(paths)
        return _read_one(os.path.expanduser(named))  # noqa: PTH111
    files = default_files() if paths is None else [os.fspath(path) for path in paths]
    documents: list[_Document] = []
    missing: list[str] = []
    # A file listed twice is read once: a pipe is empty the second time.
    for file in dict.fromkeys(file for file in files if file):
        try:
            data = _read(file)
        except FileNotFoundError:
            missing.append(file)
            continue
        documents.append(_parse(data, file))
    return _merge(documents, missing=tuple(missing))


def _read_one(file: str) -> Kubeconfig:
    data: bytes | None = None
    with contextlib.suppress(FileNotFoundError):
        data = _read(file)
    if data is None:
        raise ConfigError(f"kubeconfig {printable(file, limit=400)}: no such file")
    return _merge([_parse(data, file)], missing=())


def default_files() -> list[str]:
    """Return the files that kubectl would read: those in ``KUBECONFIG``, else ``~/.kube/config``."""
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return named.split(os.pathsep)
    home = os.path.expanduser("~")  # noqa: PTH111 (Path.home() raises where there is no home)
    return [os.path.join(home, ".kube", "config")]  # noqa: PTH118


@dataclass(frozen=True, slots=True)
class _Document:
    source: str | None
    current_context: str
    sections: dict[str, dict[str, Entry]]


def _read(file: str) -> bytes:
    problem = ""
    try:
        return read_bounded_file(file, limit=_FILE_LIMIT, pipe=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = reason(error)
    raise ConfigError(f"cannot read kubeconfig {printable(file, limit=400)}: {problem}")


def _parse(data: bytes, source: str | None) -> _Document:
    from steersman.client.configuration.bounded_yaml import YamlError, parse_yaml  # noqa: PLC0415 - a YAML parser is slow to import

    problem = ""
    content: Any = None
    try:
        content = parse_yaml(data)
    except YamlError as error:
        problem = str(error)
    top = Entry("kubeconfig", source, cast("dict[str, Any]", content) if isinstance(content, dict) else {})
    if problem:
        raise top.error(problem)
    if content is not None and not isinstance(content, dict):
        raise top.error(f"it must be a mapping with clusters, users and contexts, not {type_name(content)}")
    kind, version = top.text("kind") or "Config", top.text("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        raise top.error(f"it is {quoted(kind)} of {quoted(version)}, not kind Config of v1: is it a manifest?")
    sections = {section: _section(top, section, element) for section, element in _SECTIONS}
    return _Document(source, top.text("current-context"), sections)


def _section(top: Entry, section: str, element: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for index, item in enumerate(top.items(section)):
        place = Entry(f"{section}[{index}]", top.source, {})
        if item is None:
            continue
        if not isinstance(item, dict):
            raise place.error(f"it must be a mapping with name and {element}, not {type_name(item)}")
        named = Entry(place.what, top.source, cast("dict[str, Any]", item))
        name = named.text("name")
        # Nothing can refer to an entry without a name; kubectl ignores it, too.
        if not name:
            continue
        if name in entries:
            raise named.error(f"a second {element} named {quoted(name)}; rename or remove one")
        entries[name] = Entry(f"{element} {quoted(name)}", top.source, named.mapping(element) or {})
    return entries


def _merge(documents: Sequence[_Document], *, missing: tuple[str, ...]) -> Kubeconfig:
    merged: dict[str, dict[str, Entry]] = {section: {} for section, _ in _SECTIONS}
    current = ""
    for document in documents:
        current = current or document.current_context
        for section, entries in document.sections.items():
            for name, entry in entries.items():
                merged[section].setdefault(name, entry)
    files = tuple(document.source for document in documents if document.source is not None)
    return Kubeconfig(current, merged["clusters"], merged["users"], merged["contexts"], files, missing)


def _known(what: str, entries: dict[str, Entry]) -> str:
    if not entries:
        return f"There are no {what}"
    names = sorted(entries)
    shown = ", ".join(printable(name, limit=100) for name in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"The {what} are: {shown}{more}"
