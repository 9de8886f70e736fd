"""Names: modules are nouns, and an exported name has one meaning in all packages."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from samples.surfaces import exports

PACKAGE = Path(__file__).parents[2] / "src" / "steersman"

#: Established names: words of Kubernetes and of the field that are nouns despite their endings.
NOUNS = {
    *("decoding", "drawing", "ratcheting", "scheduling", "serving", "string", "testing", "watching"),
    *("binding", "closable", "executable", "feed", "table", "unstructured"),
}
#: Folders whose modules are named after commands and after verbs of the API.
NAMED_AFTER_VERBS = {"cli", "apiserver/verbs", "apiserver/verbs/subresources"}
#: Endings of gerunds, participles and adjectives.
NOT_A_NOUN = re.compile(r"(?:ing|ed|able|ible|ful|ous|ural)\Z")
VERBS = {
    *("add", "ask", "choose", "convert", "create", "decide", "delete", "emit", "encode", "evaluate", "extract", "find"),
    *("follow", "get", "install", "judge", "keep", "load", "make", "parse", "prepare", "prune", "put", "remove"),
    *("render", "send", "serve", "tell"),
}


def packages() -> Iterator[ModuleType]:
    """The package itself, its rooms, and the packages within them."""
    for init in sorted(PACKAGE.rglob("__init__.py")):
        yield importlib.import_module(".".join(init.parent.relative_to(PACKAGE.parent).parts))


def ambiguous(surfaces: Iterable[ModuleType]) -> dict[str, list[list[str]]]:
    """The exported names with several meanings, each with the packages that export it, grouped by meaning."""
    found: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for surface in surfaces:
        for name in set(exports(surface)):
            found[name][id(getattr(surface, name))].append(surface.__name__)
    return {name: [*meanings.values()] for name, meanings in sorted(found.items()) if len(meanings) > 1}


def test_an_exported_name_has_one_meaning() -> None:
    """A reader who has met a name in one room knows it in all others."""
    assert ambiguous(packages()) == {}


def wrong_modules(package: Path) -> list[str]:
    """The modules and packages whose names are not nouns, as far as endings and a list of verbs tell."""
    found = []
    for path in sorted(package.rglob("*.py")):
        folder, module = path.relative_to(package).parent, path.stem
        if module == "__init__":
            folder, module = folder.parent, folder.name
        word = module.rpartition("_")[2]
        verb = word in VERBS and folder.as_posix() not in NAMED_AFTER_VERBS
        if verb or (NOT_A_NOUN.search(word) and word not in NOUNS):
            found.append((folder / module).as_posix())
    return found


def test_modules_are_nouns() -> None:
    """A file tree of nouns says what is where; a verb or an adjective needs its docstring."""
    assert wrong_modules(PACKAGE) == []


def test_a_module_that_is_no_noun_is_found(tmp_path: Path) -> None:
    """The rule finds violations, also in the name of a package; commands are verbs."""
    for path in (
        "cli/serve",
        "harbor/serve",
        "harbor/judging",
        "harbor/sorted_keys",
        "harbor/open_settled",
        "harbor/string",
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / f"{path}.py").touch()
    (tmp_path / "loading").mkdir()
    (tmp_path / "loading" / "__init__.py").touch()
    assert wrong_modules(tmp_path) == ["harbor/judging", "harbor/open_settled", "harbor/serve", "loading"]


def planted(folder: Path, name: str, source: str) -> ModuleType:
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_name_with_two_meanings_is_found(tmp_path: Path) -> None:
    """The rule finds a violation; a name that several packages export with one meaning is none."""
    surfaces = [
        planted(tmp_path, "harbor", "class Pilot: ...\n\n\nclass Berth: ...\n"),
        planted(tmp_path, "bridge", "from decimal import Decimal as Decimal\n\n\nclass Pilot: ...\n"),
        planted(tmp_path, "deck", "from decimal import Decimal as Decimal\n"),
    ]
    assert ambiguous(surfaces) == {"Pilot": [["harbor"], ["bridge"]]}
