"""A webhook on loopback that answers as its path says: scenarios write the answer into the URL.

A script is a JSON object. ``response`` is merged into the answer (its uid is right unless it says otherwise), ``patch`` is a
JSON patch as a tree; ``raw`` is the whole body, ``status`` the HTTP status, ``type`` its content type, ``headers`` more
headers; ``sleep`` is a time in seconds before the answer; ``echo`` denies with the review itself as the message. ``cases`` is
a list of a field of the request, a value, and what is laid over the script: the first case whose field has that value counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steersman.apiserver import Authority
from steersman.transport import HttpListener, ServerResponse
from steersman.transport.tls import ServerTls
from steersman.wire import HttpRequest

#: The address and the certificate of the server, while it runs: what scenarios call ``{hooks}`` and ``{ca}``.
ADDRESS = {"hooks": "https://hooks.invalid", "ca": "bm8gY2VydGlmaWNhdGU="}
_VOLATILE = {"uid", "time", "creationTimestamp", "deletionTimestamp", "resourceVersion", "userInfo"}


def scripted(**script: Any) -> str:
    """The path of a webhook that answers like this."""
    return "/" + base64.urlsafe_b64encode(json.dumps(script).encode()).decode().rstrip("=")


def _steady(tree: Any) -> Any:
    """A review without what every play has anew."""
    if isinstance(tree, dict):
        return {name: "set" if name in _VOLATILE and value else _steady(value) for name, value in tree.items()}
    return [_steady(each) for each in tree] if isinstance(tree, list) else tree


def _admission(request: dict[str, Any], script: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    if "patch" in script:
        made["patch"] = base64.b64encode(json.dumps(script["patch"]).encode()).decode()
        made["patchType"] = "JSONPatch"
    if "echo" in script:
        words = json.dumps(_steady(request), sort_keys=True)
        made |= {"allowed": False, "status": {"message": words, "code": 418}}
    made |= script.get("response", {})
    return {name: value for name, value in made.items() if value is not ...}


def _conversion(request: dict[str, Any], script: dict[str, Any]) -> dict[str, Any]:
    objects = request["objects"]
    for each in objects:
        each["apiVersion"] = request["desiredAPIVersion"]
        each.pop(script.get("drop"), None)
        for path, value in script.get("set", {}).items():
            place = each
            *steps, last = path.split(".")
            for step in steps:
                place = place.setdefault(step, {})
            place[last] = value
    made = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return made | script.get("response", {})


def _field(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


async def _answer(request: HttpRequest) -> ServerResponse:
    text = request.path.strip("/")
    script: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) or b"{}")
    review = json.loads(request.body or b"{}")
    asked = review.get("request") or {}
    script |= next((more for path, value, more in script.get("cases", ()) if _field(asked, path) == value), {})
    await asyncio.sleep(script.get("sleep", 0))
    convert = review.get("kind") == "ConversionReview"
    response = (_conversion if convert else _admission)(asked, script)
    told = {"kind": review.get("kind"), "apiVersion": review.get("apiVersion"), "response": response}
    body = json.dumps(told | script.get("review", {}))
    body = script.get("raw", body) + " " * script.get("spaces", 0)
    headers = (("Content-Type", script.get("type", "application/json")), *map(tuple, script.get("headers", ())))
    return ServerResponse(status=script.get("status", 200), headers=headers, body=body.encode())


@asynccontextmanager
async def hook_server() -> AsyncGenerator[None]:
    """Serve webhooks."""
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        pair = authority.server()
    tls = ServerTls(certificate_data=pair.certificate, key_data=pair.key)
    async with HttpListener(_answer, tls=tls) as listener:
        ADDRESS["hooks"] = f"https://127.0.0.1:{listener.port}"
        ADDRESS["ca"] = base64.b64encode(authority.certificate).decode()
        yield
