"""``steersman generate models``: typed Python models of third-party kinds, or of your own CRDs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import objects_in, read_documents, say, write_files
from steersman.codegen import (
    ModelCatalog,
    Target,
    UnreadableSchema,
    class_names_in,
    read_crds,
    read_openapi,
    write_models,
)
from steersman.kinds import all_group_versions, class_of_definition
from steersman.objects import GroupVersion, Tree


def generate_models(
    files: Sequence[str],
    *,
    output: str,
    from_server: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
    group_versions: Iterable[str] | None = None,
    own: bool = False,
    packages: bool = False,
    check: bool = False,
) -> int:
    """Write the requested models; returns an exit code."""
    if bool(files) == from_server:
        raise Misuse("pass either --from-server, or files with CRDs or OpenAPI v3 documents")
    if own and from_server:
        raise Misuse("--own needs the CRD itself, which OpenAPI does not contain: kubectl get crd NAME -o yaml > FILE")
    wanted = _group_versions(group_versions)
    try:
        if from_server:
            description, source = _of_server(kubeconfig, context, wanted)
        else:
            description, source = _of_files(files, wanted, own=own), ""
        description = _only(description, wanted)
        if not description.models:
            asked = ", ".join(str(group_version) for group_version in sorted(wanted or ()))
            raise Failure(f"found no kind{f' of {asked}' if asked else ''}; pass files with CRDs, or --group-version")
        kept = _kept(Path(output)) if packages else {}
        target = Target(library=_library(description), source=source, as_owner=own, packages=packages, kept=kept)
        modules = write_models(description, target)
    except UnreadableSchema as error:
        raise Failure(str(error)) from error
    texts = {Path(output, f"{name}.py"): text for name, text in modules.items()}
    return write_files(_as_package(Path(output), texts) if packages else texts, check=check)


def _kept(folder: Path) -> dict[str, dict[str, str]]:
    """The class names of an earlier generation, by module."""
    names_by_module: dict[str, dict[str, str]] = {}
    for file in sorted(folder.glob("*/*.py")):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(
                f"cannot read {file}, whose class names stay: {error}; make it readable, or remove it"
            ) from None
        if names := class_names_in(text):
            names_by_module[f"{file.parent.name}/{file.stem}"] = names
    return names_by_module


def _as_package(folder: Path, files: dict[Path, str]) -> dict[Path, str]:
    """The files of packages, in a folder that is a package itself."""
    for package in sorted({path.parent for path in files} - {folder}):
        if (module := package.with_suffix(".py")).exists():
            say(f"{module} is no longer used: the package {package} has its kinds; remove the file")
    first = folder / "__init__.py"
    return files if first.exists() else {first: '"""Models of other programs\' kinds, or of our own."""\n', **files}


def _group_versions(texts: Iterable[str] | None) -> set[GroupVersion] | None:
    if texts is None:
        return None
    try:
        return {GroupVersion.parse(text) for text in texts}
    except ValueError as error:
        raise Misuse(f"--group-version: {error}") from error


def _of_server(
    kubeconfig: str | None, context: str | None, wanted: set[GroupVersion] | None
) -> tuple[ModelCatalog, str]:
    from steersman.cli.generate.server import read_server  # noqa: PLC0415 - files need no client

    known = set(all_group_versions())

    def is_wanted(group_version: GroupVersion) -> bool:
        return group_version not in known if wanted is None else group_version in wanted

    server = asyncio.run(read_server(kubeconfig=kubeconfig, context=context, wanted=is_wanted, progress=say))
    if not server.documents:
        raise Failure(
            "steersman.kinds already contains all group-versions of the server; name one with --group-version"
            if wanted is None
            else f"the server does not serve {', '.join(str(each) for each in sorted(wanted))}; see kubectl api-versions"
        )
    try:
        served = [GroupVersion.parse(resources["groupVersion"]) for resources in server.discovery]
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(
            "the server's discovery has a document without a group-version: is it a Kubernetes API?"
        ) from error
    return read_openapi(server.documents, discovery=server.discovery, only=served), f"Kubernetes {server.version}"


def _of_files(files: Iterable[str], wanted: set[GroupVersion] | None, *, own: bool) -> ModelCatalog:
    crds: list[Tree] = []
    documents: list[Tree] = []
    discovery: list[Tree] = []
    for name in files:
        for document in read_documents(name):
            for tree in _objects(document, name):
                if "openapi" in tree:
                    documents.append(tree)
                elif tree.get("kind") == "APIResourceList":
                    discovery.append(tree)
                elif tree.get("kind") == "CustomResourceDefinition":
                    crds.append(tree)
    if not crds and not documents:
        raise Failure(f"no CRD and no OpenAPI v3 document in {', '.join(files)}; name files with some")
    if own and documents:
        raise Failure("--own needs the CRD itself, which OpenAPI does not contain: kubectl get crd NAME -o yaml > FILE")
    from_crds = read_crds(crds, as_owner=own)
    from_openapi = read_openapi(documents, discovery=discovery, only=wanted) if documents else ModelCatalog()
    return ModelCatalog(
        models=from_openapi.models | from_crds.models, packages=from_openapi.packages | from_crds.packages
    )


def _objects(document: Any, name: str) -> list[Tree]:
    if not isinstance(document, dict):
        raise Failure(f"{name} contains a {type(document).__name__} instead of an object; name files with CRDs")
    return objects_in(cast("Tree", document))


def _only(description: ModelCatalog, wanted: set[GroupVersion] | None) -> ModelCatalog:
    """Drop the kinds of group-versions that were not requested."""
    if wanted is None:
        return description
    models = {
        name: model
        for name, model in description.models.items()
        if model.kind is None or GroupVersion(model.kind.group, model.kind.version) in wanted
    }
    if not any(model.kind for model in models.values()):
        models = {}
    return ModelCatalog(models=models, packages=description.packages)


def _library(description: ModelCatalog) -> dict[str, tuple[str, str]]:
    """The definitions that steersman.kinds has a class for."""
    classes: dict[str, tuple[str, str]] = {}
    for name, model in description.models.items():
        known = None if model.kind is not None else class_of_definition(name)
        if known is not None:
            classes[name] = (known.__module__, known.__name__)
    return classes
