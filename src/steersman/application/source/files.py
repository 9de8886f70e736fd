"""Merges the files of an application, the files that they include and the services that they extend into one document.

What the module guarantees
- Include cycles and extends cycles are errors; the number of files is limited.
- Paths are relative to the folder of the first file; those of an included or extended file are relative to its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from steersman.application.source.environment import read_dotenv_files
from steersman.application.source.kubernetes import PlacedObject, object_of
from steersman.application.syntax.documents import is_kubernetes_object, named_like_compose, read_documents
from steersman.application.syntax.interpolation import interpolate
from steersman.application.syntax.merge import IMPORTED, Merge, without_resets
from steersman.application.syntax.nodes import MapNode, Node, Origin, ScalarNode, mapping
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.values import Values, absolute, hint

_FILES_MAX = 200
_EXTENDS_MAX = 50
_NOWHERE: Mapping[Path, Node] = {}
#: Keys of an included file without an effect.
_NOT_IMPORTED = ("name", "version", "models", "collector", "objects")
_REMOTE = ("https://", "http://", "git@", "ssh://", "git://", "oci://", "github.com/")


class Files:
    """Reads and merges files."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._values = Values(report)
        self._merge = Merge(report)
        #: By file, folder and variables: a file may be read in several includes, each with its own .env.
        self._documents: dict[tuple[Path, Path, frozenset[tuple[str, str]]], MapNode] = {}
        self._includes = 0
        #: The services whose ``extends`` has an error: part of their keys is missing.
        self.incomplete: set[str] = set()
        #: The Kubernetes objects in the files.
        self.objects: list[PlacedObject] = []

    def read(
        self,
        files: Sequence[Path],
        folder: Path,
        environment: Mapping[str, str],
        trail: tuple[Path, ...] = (),
        named_at: Mapping[Path, Node] = _NOWHERE,
    ) -> MapNode | None:
        """Merge several files into one document; the last one wins. None if the files are empty.

        ``named_at`` has the places at which other files name these.
        """
        total: MapNode | None = None
        for file in files:
            origin = Origin(file, folder, environment, named_like_compose(file))
            document = self._document(origin, keep_objects=True, named_at=named_at.get(file))
            if document is None:
                continue
            document = self._included(document, (*trail, *files))
            document = self._extended(document, total)
            total = document if total is None else self._merge.documents(total, document)
        if total is None:
            return None
        merged = without_resets(total)
        return merged if isinstance(merged, MapNode) else None

    def _document(self, origin: Origin, *, keep_objects: bool = False, named_at: Node | None = None) -> MapNode | None:
        key = origin.file, origin.folder, frozenset(origin.environment.items())
        if key not in self._documents:
            if len(self._documents) >= _FILES_MAX:
                self._report.error(origin.file, f"an application has at most {_FILES_MAX} files")
                return None
            self._documents[key] = self._parsed(origin, keep_objects=keep_objects, named_at=named_at)
        return self._documents[key]

    def _parsed(self, origin: Origin, *, keep_objects: bool, named_at: Node | None) -> MapNode:
        total = MapNode(origin, 1, 1, items={}, keys={})
        for document in read_documents(origin, self._report, named_at=named_at):
            if is_kubernetes_object(document):
                if keep_objects:
                    self.objects += object_of(document, self._report)
                continue
            table = self._values.table(interpolate(document, self._report), "the file")
            if table is not None:
                total = self._merge.documents(total, table) if total.items else table
        return total

    def _included(self, document: MapNode, trail: tuple[Path, ...]) -> MapNode:
        for item in self._values.items(document.get("include"), "include"):
            found = self._include(item, trail)
            if found is not None:
                self._values.check_keys(found, "an included file", (*IMPORTED, "include"), _NOT_IMPORTED)
                document = self._merge.imported(document, found)
        return document

    def _include(self, item: Node, trail: tuple[Path, ...]) -> MapNode | None:
        values, paths, folder_node, env_node = self._values, [item], None, None
        if isinstance(item, MapNode):
            values.check_keys(item, "include", ("path", "project_directory", "env_file"))
            node = item.get("path")
            paths = [node] if isinstance(node, ScalarNode) else list(values.items(node, "path"))
            folder_node, env_node = item.get("project_directory"), item.get("env_file")
        files: dict[Path, Node] = {}
        for path in paths:
            text = values.text(path, "include")
            if text and text.startswith(_REMOTE):
                self._report.error(path, f"include supports only local files, not {shown(text)}")
            elif text:
                files.setdefault(Path(absolute(path, text)), path)
        if not files:
            if isinstance(item, MapNode) and not paths:
                self._report.error(item, "include needs a path")
            return None
        first = next(iter(files))
        if first in trail:
            names = " -> ".join(str(file) for file in (*trail[trail.index(first) :], first))
            self._report.error(item, f"the files include each other: {names}")
            return None
        self._includes += 1
        if self._includes > _FILES_MAX:
            self._report.error(item.origin.file, f"an application includes at most {_FILES_MAX} files")
            return None
        folder = values.path(folder_node, "project_directory")
        base = Path(folder) if folder else first.parent
        dotenv: list[tuple[Path, bool]] = [(base / ".env", False)]
        if env_node is not None:
            dotenv = [(Path(absolute(env_node, text)), True) for text in values.text_or_texts(env_node, "env_file")]
        above = item.origin.environment
        environment = {**read_dotenv_files(dotenv, above, self._report), **above}
        return self.read([*files], base, environment, trail, files)

    def _extended(self, document: MapNode, below: MapNode | None) -> MapNode:
        services = document.get("services")
        if not isinstance(services, MapNode):
            return document
        items: dict[str, Node] = {}
        for name, service in services.items.items():
            items[name] = self._service(service, name, document, below, ())
        changed = services.with_items(items, {})
        return document.with_items({**document.items, "services": changed}, {})

    def _service(
        self,
        service: Node,
        name: str,
        document: MapNode,
        below: MapNode | None,
        trail: tuple[tuple[Path, str], ...],
    ) -> Node:
        extends = service.get("extends") if isinstance(service, MapNode) else None
        if extends is None or not isinstance(service, MapNode):
            return service
        trail = (*trail, (service.origin.file, name))
        extending = trail[0][1]
        own = service.with_items({key: value for key, value in service.items.items() if key != "extends"}, {})
        other, target, place = self._base(extends, document, below)
        if other is None or target is None:
            self.incomplete.add(extending)
            return own
        step = other.origin.file, target
        if step in trail or len(trail) > _EXTENDS_MAX:
            names = " -> ".join(service for _, service in (*trail, step))
            self._report.error(place, f"the services extend each other: {names}")
            self.incomplete.add(extending)
            return own
        base = other.items.get(target)
        if base is None:
            self.incomplete.add(extending)
            self._report.error(
                place, f"{other.origin.file.name} has no service {shown(target)}{hint(target, other.items)}"
            )
            return own
        base = self._service(base, target, mapping(other, {"services": other}), None, trail)
        return self._merge.services(base, own) if isinstance(base, MapNode) else own

    def _base(self, extends: Node, document: MapNode, below: MapNode | None) -> tuple[MapNode | None, str | None, Node]:
        """The services of the extended file, the name of the extended service, and the place of that name."""
        values = self._values
        if isinstance(extends, ScalarNode):
            name, place, file_node = extends.text, extends, None
        else:
            table = values.table(extends, "extends")
            if table is None:
                return None, None, extends
            values.check_keys(table, "extends", ("service", "file"))
            name, place, file_node = values.text(table.get("service"), "service"), table, table.get("file")
            if name is None:
                self._report.error(table, "extends needs a service")
                return None, None, extends
        if file_node is not None:
            path = values.path(file_node, "file")
            if path is None:
                return None, None, extends
            file = Path(path)
            origin = Origin(file, file.parent, extends.origin.environment, named_like_compose(file))
            found = self._document(origin, named_at=file_node)
            services = found.get("services") if found else None
            if services is None and not self._report.has_errors:
                self._report.error(file_node, f"{path} has no services")
        else:
            services = document.get("services")
            if isinstance(services, MapNode) and name not in services.items and below is not None:
                services = below.get("services")
        return services if isinstance(services, MapNode) else None, name, place


def declared_name(files: Sequence[Path], folder: Path, environment: Mapping[str, str]) -> ScalarNode | None:
    """The name of the application in the files. It is read first, because variables may refer to it."""
    found: ScalarNode | None = None
    # Problems are reported later, when the files are read for real.
    silent = Report()
    for file in files:
        for document in read_documents(Origin(file, folder, environment), silent):
            if not is_kubernetes_object(document) and isinstance(document, MapNode):
                name = document.get("name")
                named = interpolate(name, silent) if name is not None else None
                found = named if isinstance(named, ScalarNode) else found
    return found
