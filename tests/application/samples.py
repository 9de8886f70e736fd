"""Applications of texts, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steersman.application import Application, ApplicationError, ServiceDefinition, load_application

ENVIRONMENT = {"HOME": "/home/user"}


def load(folder: Path, texts: str | Mapping[str, str], **options: Any) -> Application:
    """The application of a folder with these files; a text alone is its steersman.yaml."""
    for name, text in ({"steersman.yaml": texts} if isinstance(texts, str) else texts).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return load_application(folder, **{"environment": ENVIRONMENT, **options})


def only(application: Application) -> ServiceDefinition:
    """The single service of an application."""
    [service] = application.services.values()
    return service


def problems(folder: Path, texts: str | Mapping[str, str], **options: Any) -> str:
    """The problems of an application, one in each line."""
    with pytest.raises(ApplicationError) as raised:
        load(folder, texts, **options)
    return str(raised.value)
