"""Secrets: their types and required keys."""

from __future__ import annotations

from base64 import b64decode, b64encode

import msgspec

from steersman.apiserver.registry.builtin.config_map import MAX_SIZE, decoded_size, drop_empty, locked, with_empty
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import config_key
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, metadata
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.golang import cannot_unmarshal, json_type
from steersman.objects.field_problems import FieldProblem, each, invalid, required, too_long, unchanged

_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class SecretStrategy(BuiltinStrategy):
    """How Secrets behave."""

    def default(self, obj: Tree) -> None:
        with_empty(obj, "data", super().default)

    def prepare_create(self, obj: Tree) -> None:
        """Drop empty fields."""
        super().prepare_create(obj)
        drop_empty(obj, "data")

    def fill(self, obj: Tree) -> None:
        """Merge stringData into data; the default type is Opaque."""
        texts = obj.pop("stringData", None)
        if texts:
            encoded = {key: b64encode(value.encode()).decode() for key, value in texts.items()}
            obj["data"] = inner(obj, "data") | encoded
        obj.setdefault("type", "Opaque")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Keys must be file names, the total size small enough, and the keys that the type requires present."""
        problems: list[FieldProblem] = []
        data = inner(obj, "data")
        for key in data:
            problems += each(f"data[{key}]", key, config_key(key))
        if sum(map(decoded_size, data.values())) > MAX_SIZE:
            problems.append(too_long("data", MAX_SIZE))
        return problems + _typed(obj, data)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about an invalid pair of key and certificate."""
        del old
        data = inner(obj, "data")
        if obj.get("type") != "kubernetes.io/tls" or b"-----BEGIN" in b64decode(data.get("tls.crt", "")):
            return []
        return ["tls: failed to find any PEM data in certificate input"]

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The type is immutable, and so is an immutable Secret."""
        stays = unchanged("type", obj.get("type"), old.get("type")) + locked(obj, old, ("data",))
        drop_empty(obj, "data")
        return [CHANGED, *stays, WHOLE, *self.validate_create(obj)]


def _typed(obj: Tree, data: dict[str, str]) -> list[FieldProblem]:
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            named = inner(metadata(obj), "annotations").get(_ACCOUNT)
            return [] if named else [required(f"metadata.annotations[{_ACCOUNT}]")]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson" as type_:
            return _docker(_DOCKER[type_], data)
        case "kubernetes.io/basic-auth":
            keys = ("username", "password")
            return [] if any(key in data for key in keys) else [required(f"data[{key}]") for key in keys]
        case "kubernetes.io/ssh-auth":
            return [] if data.get("ssh-privatekey") else [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
        case _:
            return []


def _docker(key: str, data: dict[str, str]) -> list[FieldProblem]:
    if key not in data:
        return [required(f"data[{key}]")]
    why = _not_an_object(b64decode(data[key]))
    return [invalid(f"data[{key}]", "<secret contents redacted>", why)] if why else []


def _not_an_object(raw: bytes) -> str:
    """Why a text is not a JSON object, with the message of the server's decoder."""
    text = raw.strip()
    if not text:
        return "unexpected end of JSON input"
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        first = text[:1].decode("latin-1")
        if first not in '{["-0123456789tfn':
            return f"invalid character '{first}' looking for beginning of value"
        return "unexpected end of JSON input"
    if isinstance(value, dict) or value is None:
        return ""
    return cannot_unmarshal(json_type(value), "map[string]interface {}")
