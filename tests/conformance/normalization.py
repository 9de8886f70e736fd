"""Answers with all that may differ between two right servers taken out, and nothing else.

Guarantees
- A uid, resourceVersion, address or generated name becomes a label that tells in which step it was first seen: whether
  two places hold the same value stays visible, and so does the order of resourceVersions.
- What a scenario sends itself comes back as it was sent.
- The rules are those of this module.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import yaml
from conformance.scenario import lookup

from samples.site import GROUP
from steersman.aio import utc_now

#: Where groups of custom resources are.
_CUSTOM = GROUP[GROUP.index(".") :]

#: The headers that are compared; of an ETag only that there is one.
HEADERS = (
    "Content-Type",
    "Warning",
    "Retry-After",
    "Allow",
    "Cache-Control",
    "Location",
    "Vary",
    "Content-Encoding",
    "X-Kubernetes-Pf-Flowschema-Uid",
    "X-Kubernetes-Pf-Prioritylevel-Uid",
)

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
#: A token of a service account, and what else has its form.
_TOKEN = re.compile(r"(?P<header>[\w-]+)\.(?P<claims>eyJ[\w-]+)\.(?P<signature>[\w-]*)(?P<more>.*)", re.DOTALL)
_AGE = re.compile(r"(\d+[smhd]){1,2}( ago)?|-\d+s")
#: An object as text within a message.
_QUOTED_OBJECT = re.compile(r'"\{(?:[^"\\]|\\.)*\}"')
_PORT = re.compile(r"\b3\d{4}\b")
#: A node port as tables show it: ``80:30001/TCP``.
_PORT_CELL = re.compile(r"(?<=:)3\d{4}(?=/[A-Z])")
_ADDRESS = re.compile(r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
#: Where messages name resourceVersions: of objects (exact), and of the store (at least).
_ASKED_VERSIONS = re.compile(r"(ResourceVersion in (?:the )?precondition(?:: | \())(\d+)")
#: In a patch that is shown as Go prints a map.
_GO_VERSIONS = re.compile(r"(\bresourceVersion:)(\d+)")
_OBJECT_VERSIONS = re.compile(r"(ResourceVersion in (?:object meta|record)(?:: | \()|not decodable revision=)(\d+)")
_STORE_VERSIONS = re.compile(r"(current: |resource version: \d+ \(|resourceVersion: |revision: )(\d+)")


def order_managers(metadata: dict[str, Any]) -> None:
    """The entries of managedFields come in the order of their seconds: whether two have the same is chance."""
    managed = metadata.get("managedFields")
    if isinstance(managed, list) and all(isinstance(entry, dict) for entry in managed):
        names = ("operation", "manager", "apiVersion", "subresource")
        managed.sort(key=lambda entry: [str(entry.get(name, "")) for name in names])


def _told(cause: dict[str, Any]) -> str:
    return f"{cause.get('field', '')}: {cause.get('message', '')}"


def _order_causes(status: dict[str, Any], details: dict[str, Any]) -> None:
    """The problems of a custom resource, and the owners of fields, come in the order of a Go map: in none."""
    causes = details.get("causes")
    if isinstance(causes, list) and all(cause.get("reason") == "FieldManagerConflict" for cause in causes):
        causes.sort(key=lambda cause: cause.get("message", ""))
        return
    if details.get("kind") == "CustomResourceDefinition" and isinstance(causes, list) and len(causes) > 1:
        # Only what is wrong with schemas comes in no order; in which order all the rest comes is compared.
        runs = groupby(causes, key=lambda cause: "openAPIV3Schema" in cause.get("field", ""))
        causes = [each for schemas, run in runs for each in (sorted(run, key=_told) if schemas else run)]
        details["causes"] = causes
        status["message"] = (
            f"{status['message'].partition(' is invalid: ')[0]} is invalid: {list(dict.fromkeys(map(_told, causes)))}"
        )
        return
    if str(details.get("group")).endswith(_CUSTOM) and isinstance(causes, list) and len(causes) > 1:
        causes.sort(key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
        told = sorted(f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes)
        status["message"] = f"{status['message'].partition(' is invalid: ')[0]} is invalid, in any order: {told}"


def _generated_names(literals: str) -> re.Pattern[str] | None:
    """What finds the names that a server makes of the prefixes in a scenario: 58 characters of those at most."""
    prefixes = {prefix[:58] for prefix in re.findall(r"'generateName': '([^']+)'", literals)}
    if not prefixes:
        return None
    ordered = sorted(prefixes, key=lambda prefix: (-len(prefix), prefix))
    start = "|".join(re.escape(prefix) for prefix in ordered)
    return re.compile(rf"(?<![A-Za-z0-9])({start})[bcdfghjklmnpqrstvwxz2456789]{{5}}(?![A-Za-z0-9])")


class Labels:
    """Values by the step that first showed them."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.known: dict[Any, str] = {}
        self._step = -1
        self._in_step = 0

    def of(self, value: Any, step: int) -> str:
        """The label of a value, a new one if it was never seen."""
        if value not in self.known:
            self._in_step = self._in_step + 1 if step == self._step else 1
            self._step = step
            more = f", no. {self._in_step}" if self._in_step > 1 else ""
            self.known[value] = f"<{self.word} of step {step}{more}>"
        return self.known[value]


class Versions(Labels):
    """resourceVersions: labels that also tell when a new one is older than one that is known."""

    def __init__(self) -> None:
        super().__init__("rv")
        self._sorted: list[int] = []

    def of(self, value: str, step: int) -> str:
        """The label of an object's resourceVersion."""
        if not value.isdigit() or value == "0":
            return value
        number = int(value)
        if number not in self.known:
            at = bisect_right(self._sorted, number)
            label = super().of(number, step)
            if at < len(self._sorted):
                self.known[number] = f"{label[:-1]}, older than {self.known[self._sorted[at]][1:]}"
            self._sorted.insert(at, number)
        return self.known[number]

    @property
    def newest(self) -> int:
        """The newest one that is known."""
        return self._sorted[-1] if self._sorted else 0

    def at_least(self, value: str) -> str:
        """The label of the store's resourceVersion, which others move on as well: the last one known of an object."""
        if not value.lstrip("-").isdigit() or value == "0":
            return value
        at = bisect_right(self._sorted, int(value))
        return f"<at least {self.known[self._sorted[at - 1]][1:]}" if at else "<before all rvs>"


class Normalizer:
    """The labels of one play of one scenario."""

    def __init__(self, names: dict[str, str], literals: str, *, host: str = "") -> None:
        self._names = {actual: f"{{{name}}}" for name, actual in names.items()}
        self._unique = re.compile("|".join(re.escape(actual) for actual in sorted(self._names, key=len, reverse=True)))
        self._literals = literals
        self._host = host
        self._uids = Labels("uid")
        self._versions = Versions()
        self._suffixes = Labels("suffix")
        self._generated = _generated_names(literals)
        self._addresses = Labels("address")
        self._ports = Labels("node port")
        self._step = 0
        self._started = utc_now()

    def head(self, status: int, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """The head of an answer as it is compared."""
        told: dict[str, Any] = {}
        for name, value in headers:
            for wanted in HEADERS:
                if name.lower() == wanted.lower():
                    told.setdefault(wanted, []).append(self._text(value))
            if name.lower() == "etag":
                told["ETag"] = "<present>"
        if all("unrecognized format" in each for each in told.get("Warning", ())):
            # the server lists formats in the order of a Go map
            told.get("Warning", []).sort()
        return {"status": status, "headers": told}

    def body(self, step: int, body: bytes, content_type: str) -> Any:
        """A body as it is compared: JSON and YAML by structure, else as text."""
        self._step = step
        text = body.decode("utf-8", "backslashreplace")
        try:
            if "json" in content_type:
                return self.tree(json.loads(text))
            if "yaml" in content_type:
                return self.tree(yaml.safe_load(text))
        except (ValueError, yaml.YAMLError):
            pass
        if text.startswith("[+]"):
            # the checks of a server's health come in the order of a Go map
            text = "\n".join(sorted(text.split("\n")))
        return self._text(text)

    def forget_scarce(self, body: bytes) -> None:
        """Of a new Service: its addresses and ports are its own, even if an earlier one had the same by chance."""
        try:
            tree = json.loads(body)
        except ValueError:
            return
        if not isinstance(tree, dict) or tree.get("kind") != "Service" or not isinstance(tree.get("spec"), dict):
            return
        for address in tree["spec"].get("clusterIPs", ()):
            self._addresses.known.pop(address, None)
        for port in tree["spec"].get("ports", ()):
            self._ports.known.pop(port.get("nodePort"), None)

    @property
    def newest(self) -> int:
        """The newest resourceVersion of an object that was seen."""
        return self._versions.newest

    def frame(self, step: int, frame: bytes, began: int) -> Any:
        """A frame of a watch as it is compared; `began` is the newest version that was known when the watch began."""
        self._step = step
        try:
            tree = json.loads(frame)
        except ValueError:
            return self._text(frame.decode("utf-8", "backslashreplace"))
        # a table has one in itself, and one in the object of its row
        for place in ("object.metadata", "object.rows.0.object.metadata"):
            metadata = lookup(tree, place)
            if tree.get("type") == "BOOKMARK" and isinstance(metadata, dict) and "resourceVersion" in metadata:
                # when it was sent is the server's affair; that it does not lie in the past is not
                version = str(metadata["resourceVersion"])
                fresh = version.isdigit() and int(version) >= began
                metadata["resourceVersion"] = "<since the watch began>" if fresh else "<from before the watch began>"
        return self.tree(tree)

    def tree(self, tree: Any) -> Any:
        """A tree with its labels."""
        return self._walk(tree)

    def _walk(self, tree: Any, key: str = "") -> Any:
        if isinstance(tree, str):
            return self._address(tree, key) if key in {"clusterIP", "serverAddress"} else self._text(tree)
        if isinstance(tree, list):
            return [self._address(v, key) if key == "clusterIPs" else self._walk(v) for v in tree]
        if not isinstance(tree, dict):
            if key in {"nodePort", "healthCheckNodePort"} and tree and f"{tree}" not in self._literals:
                return self._ports.of(tree, self._step)
            return tree
        if "items" in tree or "rows" in tree or str(tree.get("kind", "")).endswith("List"):
            self._at_least(tree)
        if isinstance(tree.get("rows"), list):
            self._ages(tree["rows"])
        if tree.get("kind") == "Status" and isinstance(tree.get("details"), dict):
            _order_causes(tree, tree["details"])
        if isinstance(tree.get("metadata"), dict):
            tree["metadata"] = self._metadata(tree["metadata"])
        if isinstance(tree.get("token"), str):
            tree = tree | self._token(tree)
        return {self._text(name): self._walk(value, name) for name, value in tree.items()}

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        order_managers(metadata)
        if isinstance(metadata.get("resourceVersion"), str):
            metadata["resourceVersion"] = self._versions.of(metadata["resourceVersion"], self._step)
        due, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
        if isinstance(due, str) and isinstance(grace, int) and due not in self._literals:
            metadata["deletionTimestamp"] = self._deletion(due, grace)
        if isinstance(metadata.get("continue"), str):
            metadata["continue"] = self._continue(metadata["continue"])
        return metadata

    def _at_least(self, tree: Any) -> None:
        metadata = tree.get("metadata") if isinstance(tree, dict) else None
        if isinstance(metadata, dict) and isinstance(metadata.get("resourceVersion"), str):
            metadata["resourceVersion"] = self._versions.at_least(metadata["resourceVersion"])

    def _continue(self, token: str) -> Any:
        try:
            tree = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except (ValueError, binascii.Error):
            return token
        if isinstance(tree, dict) and "rv" in tree:
            tree["rv"] = self._versions.at_least(str(tree["rv"])) if tree["rv"] > 0 else tree["rv"]
        return {"continue token": tree}

    def _token(self, tree: dict[str, Any]) -> dict[str, Any]:
        """A token by what it says, its times by its life; how it is signed is the server's affair."""
        found = _TOKEN.fullmatch(tree["token"])
        if found is None or tree["token"] in self._literals:
            return {}
        try:
            claims = json.loads(base64.urlsafe_b64decode(found["claims"] + "=="))
            made, about = claims["iat"], claims["kubernetes.io"]
        except (ValueError, KeyError):
            return {}
        fresh = self._started - timedelta(seconds=2) <= datetime.fromtimestamp(made, UTC) <= utc_now()
        times = {"iat": "<now>" if fresh else made, "nbf": claims["nbf"] - made, "exp": claims["exp"] - made}
        if "warnafter" in about:
            about["warnafter"] -= made
        told = {"token": {"claims": claims | times, "more": found["more"]}}
        if "expirationTimestamp" in tree:
            # a second may begin between the two
            life = datetime.fromisoformat(tree["expirationTimestamp"]).timestamp() - made
            told["expirationTimestamp"] = f"<after about {round(life, -1):.0f} s>"
        return told

    def _ages(self, rows: list[Any]) -> None:
        for row in rows:
            cells = row.get("cells") if isinstance(row, dict) else None
            for index, cell in enumerate(cells or []):
                if isinstance(cell, str) and _AGE.fullmatch(cell) and repr(cell) not in self._literals:
                    cells[index] = "<age>"
                elif isinstance(cell, str):
                    cells[index] = _PORT_CELL.sub(self._port_in_cell, cell)

    def _port_in_cell(self, found: re.Match[str]) -> str:
        return found[0] if found[0] in self._literals else self._ports.of(int(found[0]), self._step)

    def _address(self, text: Any, key: str) -> Any:
        if text in {"None", ""} or not isinstance(text, str) or text in self._literals:
            return text
        return "<server>" if key == "serverAddress" else self._addresses.of(text, self._step)

    def _quoted(self, found: re.Match[str]) -> str:
        try:
            tree = json.loads(json.loads(found[0]))
        except ValueError:
            return found[0]
        # the order of fields is no part of what a message means
        return json.dumps(self._walk(tree), sort_keys=True)

    def _text(self, text: str) -> str:
        if '"{' in text:
            text = _QUOTED_OBJECT.sub(self._quoted, text)
        text = self._unique.sub(lambda found: self._names[found[0]], text)
        if self._host and self._host in text:
            text = text.replace(self._host, "<server>")
        if _TIME.fullmatch(text):
            return self._time(text)
        if self._generated is not None:
            text = self._generated.sub(lambda found: found[1] + self._suffixes.of(found[0], self._step), text)
        text = _UID.sub(
            lambda found: found[0] if found[0] in self._literals else self._uids.of(found[0], self._step), text
        )
        text = _ADDRESS.sub(
            lambda found: found[0] if found[0] in self._literals else self._addresses.of(found[0], self._step), text
        )
        if self._ports.known:
            text = _PORT.sub(lambda found: self._ports.known.get(int(found[0]), found[0]), text)
        text = _OBJECT_VERSIONS.sub(lambda found: found[1] + self._versions.of(found[2], self._step), text)
        text = _GO_VERSIONS.sub(lambda found: found[1] + self._versions.known.get(int(found[2]), found[2]), text)
        text = _ASKED_VERSIONS.sub(
            # an unknown one is what the scenario sent
            lambda found: found[1] + self._versions.known.get(int(found[2]), found[2]),
            text,
        )
        return _STORE_VERSIONS.sub(lambda found: found[1] + self._versions.at_least(found[2]), text)

    def _time(self, text: str) -> str:
        if text in self._literals:
            return text
        try:
            away = datetime.fromisoformat(text).astimezone(UTC) - utc_now()
        except ValueError:
            return text
        if not timedelta(hours=-1) < away < timedelta(hours=1):
            return text
        digits = len(text.partition(".")[2]) - 1 if "." in text else 0
        return f"<now with {digits} digits>" if digits else "<now>"

    def _deletion(self, text: str, grace: int) -> str:
        """When an object is to go: how long that is away is a matter of when one looks, its begin is not."""
        try:
            began = datetime.fromisoformat(text).astimezone(UTC) - timedelta(seconds=grace)
        except (ValueError, OverflowError):
            return text
        slack = timedelta(seconds=2)
        right = self._started - slack <= began <= utc_now() + slack
        return "<now and its grace>" if right else f"<not its grace of {grace} s from the deletion>"
