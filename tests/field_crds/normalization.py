"""Answers as two servers share them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from samples.raw_api import RawAnswer
from steersman.aio import utc_now

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"(\d+[smhd]){1,2}|<invalid>")
_MOMENT = timedelta(hours=1)


def shared(answer: RawAnswer) -> dict[str, Any]:
    """What of an answer has to be the same everywhere."""
    tree = _walk(answer.body)
    if isinstance(tree, dict):
        _order(tree)
    return {"code": answer.code, "warnings": sorted(answer.warnings), "body": tree}


def _order(tree: dict[str, Any]) -> None:
    """Problems of a custom resource come in the order of a Go map: in none. Owners of fields that conflict do as well."""
    details = tree.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list) and len(causes) > 1:
        causes.sort(key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
        if " is invalid: " in tree["message"]:
            told = sorted(f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes)
            tree["message"] = f"{tree['message'].partition(' is invalid: ')[0]} is invalid, in any order: {told}"


def _walk(value: Any, name: str = "") -> Any:  # noqa: PLR0911 - one case each
    match value:
        case dict():
            return {key: _walk(each, key) for key, each in value.items()}
        case list() if name == "conditions":
            return sorted((_walk(each) for each in value), key=lambda each: str(each.get("type")))
        case list() if name == "managedFields":
            return sorted((_walk(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
        case list() if name == "cells":
            return ["<age>" if isinstance(each, str) and _AGE.fullmatch(each) else _walk(each) for each in value]
        case list():
            return [_walk(each) for each in value]
        case str() if name == "resourceVersion":
            return "<version>"
        case str():
            return _TIME.sub(_time, _UID.sub("<uid>", value))
        case _:
            return value


def _time(found: re.Match[str]) -> str:
    away = datetime.fromisoformat(found[0]).astimezone(UTC) - utc_now()
    return "<now>" if -_MOMENT < away < _MOMENT else found[0]
