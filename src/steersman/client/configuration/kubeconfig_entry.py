"""One cluster, user or context of a kubeconfig, read field by field.

Each method returns a value of the declared type, or raises a ConfigError that names the file, the entry, the field and
the fix. No message contains a value: it may be a secret.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass
from typing import Any, cast

from steersman.client.configuration.bounded_file import read_bounded_file, reason
from steersman.client.configuration.secrecy import printable
from steersman.errors import ConfigError

# A bundle of a few hundred certificates; anything larger is not a certificate or a key.
_MATERIAL_LIMIT = 4 << 20
_NAME_SHOWN = 200

_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a mapping",
}


def quoted(name: str) -> str:
    """Return a name from a file, quoted and safe to print."""
    return f'"{printable(name, limit=200)}"'


def type_name(value: object) -> str:
    """Return YAML's name for the type of `value`."""
    return _NAMES.get(type(value), "nothing")


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """A mapping of fields and its place. `source` is its file; None for text without a file."""

    what: str
    source: str | None
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Entry {self.what} in {self.source or 'text'}>"

    def error(self, problem: str) -> ConfigError:
        """Return a ConfigError about this entry."""
        where = f"{self.source}: " if self.source else ""
        return ConfigError(f"{where}{self.what}: {problem}")

    def text(self, key: str) -> str:
        """Return a string; "" if it is absent, null or empty, which are the same in a kubeconfig."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{key} must be a string, not {type_name(value)}; put it in quotes")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean; False if it is absent."""
        value = self.fields.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(f"{key} must be true or false, not {type_name(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; empty if it is absent."""
        return tuple(self._text_item(key, item) for item in self.items(key))

    def items(self, key: str) -> list[Any]:
        """Return a list; empty if it is absent."""
        value = self.fields.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{key} must be a list, not {type_name(value)}")
        return cast("list[Any]", value)

    def mapping(self, key: str) -> dict[str, Any] | None:
        """Return a mapping; None if it is absent."""
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a mapping, not {type_name(value)}")
        return cast("dict[str, Any]", value)

    def nested(self, key: str) -> Entry | None:
        """Return a mapping as an entry of its own; None if it is absent."""
        value = self.mapping(key)
        return None if value is None else Entry(f"{self.what}: {key}", self.source, value)

    def lists_of_texts(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return a mapping of lists of strings as pairs."""
        value = self.nested(key)
        return () if value is None else tuple((name, value.texts(name)) for name in value.fields)

    def data(self, key: str) -> bytes | None:
        """Return the bytes of a base64 field; None if it is absent or empty."""
        encoded = self.text(key)
        if not encoded:
            return None
        try:
            return base64.b64decode(encoded.replace("\n", "").replace("\r", "").encode("ascii"), validate=True) or None
        except (UnicodeEncodeError, binascii.Error):
            pass
        raise self.error(f"{key} is not base64; encode the file with `base64 --wrap=0 FILE`")

    def path(self, key: str) -> str:
        """Return an absolute file name, relative to the kubeconfig's directory; "" if absent."""
        return self.resolved(key, self.text(key))

    def resolved(self, key: str, name: str) -> str:
        """Return `name`, the value of `key`, as an absolute file name; "" if it is empty."""
        if not name:
            return ""
        if self.source is None:
            raise self.error(
                f"{key} names a file; a kubeconfig given as text must contain its data inline ({key}-data)"
            )
        folder = os.path.dirname(os.path.abspath(self.source))  # noqa: PTH100, PTH120
        return os.path.normpath(os.path.join(folder, name))  # noqa: PTH118

    def material(self, key: str) -> tuple[str | None, bytes | None]:
        """Return the file name or the inline data of a PEM field: ``client-key`` or ``client-key-data``."""
        file, data = self.path(key), self.data(f"{key}-data")
        if file and data:
            raise self.error(f"{key} and {key}-data are both set; remove one")
        if file:
            self._check_pem(key, self.read(key, file))
        elif data:
            self._check_pem(f"{key}-data", data)
        return file or None, data

    def read(self, key: str, file: str) -> bytes:
        """Return the contents of the file that `key` names."""
        problem = ""
        try:
            return read_bounded_file(file, limit=_MATERIAL_LIMIT)
        except OSError as error:
            problem = reason(error)
        # A key or a token pasted instead of a file name must not be shown.
        if len(self.text(key)) > _NAME_SHOWN:
            raise self.error(f"{key} must name a file, but is too long for one: is it the data itself?")
        raise self.error(f"{key} names {printable(file, limit=400)}, which cannot be read: {problem}")

    def _check_pem(self, key: str, data: bytes) -> None:
        if b"-----BEGIN " not in data:
            raise self.error(f"{key} contains no PEM block (-----BEGIN ...-----)")

    def _text_item(self, key: str, item: object) -> str:
        if not isinstance(item, str):
            raise self.error(f"{key} must be a list of strings; it contains {type_name(item)}")
        return item
