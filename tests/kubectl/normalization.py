"""What kubectl printed, with all taken out that may differ between two right servers.

Guarantees
- A uid, resourceVersion, address or port that a server chose becomes a label that tells which line of the scenario
  showed it first: whether two places hold the same value stays visible, and so does the order of resourceVersions.
- What a scenario says itself is compared as it is.
- Columns are compared by their cells: how wide one is depends on ages.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

from conformance.normalization import Labels, Versions, order_managers

from steersman.aio import utc_now

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
#: As `kubectl describe` shows it.
_LONG_TIME = re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
#: As Go and `diff` show it.
_PLAIN_TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}")
_VERSION = re.compile(r'(\bresourceVersion"?: ?"|\bResource Version: +|\bto be 1, was )(\d+)')
_ADDRESS = re.compile(r"\b10\.0\.0\.\d{1,3}\b")
_NODE_PORT = re.compile(r"\b3[0-2]\d{3}\b")
_GENERATED = re.compile(r"\b(made-)([bcdfghjklmnpqrstvwxz2456789]{5})\b")
_LOG_HEAD = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\w+\.go):\d+\]", re.MULTILINE)
#: Whether a wait that ends in time still reads or watches already is a matter of the moment.
_ENDED_WATCH = re.compile(r"^[IWE].* reflector\.go:.*(very short watch|context deadline exceeded).*\n", re.MULTILINE)
_CREDENTIAL = re.compile(r"X509SHA256=[0-9a-f]+")
_TEMPORARY = re.compile(r"(LIVE|MERGED|kubectl-edit)-\d+")
_AGO = re.compile(r"\b(\d+[smhd]){1,2} ago\b")
_AGE_CELL = re.compile(r"(?<![^ ] )(?<![^ ])(?:(?:\d+[smhd]){1,2}|<invalid>)(?= {2}|$)")
_AGE_LINE = re.compile(r"^(\s*(?:Age|Duration): +)\S+")
_AGES = re.compile(r"\b(AGE|LAST SEEN|DURATION|LAST SCHEDULE)\b")
#: The head of a table that `kubectl describe` shows.
_TABLE_HEAD = re.compile(r"^(Events:$| .*\bAge\b)")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
#: What other plays installed; the scenario's own namespace has its name by then.
_OF_OTHERS = re.compile(r"[a-z0-9]\.play\.steersman\.dev")
_GAP = re.compile(r"(?<=\S) {2,}")


class Normalizer:
    """The labels of one play of one scenario; `fixed` are texts that have names."""

    def __init__(self, fixed: dict[str, str], literals: str) -> None:
        self._fixed = fixed
        self._literals = literals
        self._uids = Labels("uid")
        self._versions = Versions()
        self._addresses = Labels("address")
        self._ports = Labels("node port")
        self._names = Labels("suffix")

    def text(self, text: str, step: int, *, ages: bool = False) -> str:
        """A text as it is compared; in a table with `ages` cells may be ages, whatever its head says."""

        def labeled(labels: Labels, whole: str, value: str) -> str:
            return whole if whole in self._literals else whole.replace(value, labels.of(value, step))

        if text.startswith('{"'):
            text = _as_sent(text)
        # First: the pid in the head of a log line may look like a node port.
        text = _ENDED_WATCH.sub("", text)
        text = _LOG_HEAD.sub(r"\1 <when> \2]", text)
        for actual, name in self._fixed.items():
            text = text.replace(actual, name)
        text = _CERTIFICATE.sub("<certificate>", text)
        text = _UID.sub(lambda found: labeled(self._uids, found[0], found[0]), text)
        text = _VERSION.sub(lambda found: found[1] + self._versions.of(found[2], step), text)
        text = _ADDRESS.sub(lambda found: labeled(self._addresses, found[0], found[0]), text)
        text = _NODE_PORT.sub(lambda found: labeled(self._ports, found[0], found[0]), text)
        text = _GENERATED.sub(lambda found: labeled(self._names, found[0], found[2]), text)
        text = _TIME.sub(self._time, text)
        text = _LONG_TIME.sub("<time>", text)
        text = _PLAIN_TIME.sub("<time>", text)
        text = _CREDENTIAL.sub("X509SHA256=<hash>", text)
        text = _TEMPORARY.sub(r"\1-<number>", text)
        text = _AGO.sub("<age> ago", text)
        return "\n".join(_lines(text, ages=ages or bool(_AGES.search(text))))

    def _time(self, found: re.Match[str]) -> str:
        away = datetime.fromisoformat(found[0]).astimezone(UTC) - utc_now()
        if found[0] in self._literals or not timedelta(hours=-1) < away < timedelta(hours=1):
            return found[0]
        return f"<now with {len(found[1]) - 1} digits>" if found[1] else "<now>"


def _as_sent(text: str) -> str:
    """What ``--raw`` shows of an answer: the order of fields has no meaning in it."""
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    order_managers(tree.get("metadata", {}))
    return json.dumps(tree, sort_keys=True)


def _lines(text: str, *, ages: bool) -> list[str]:
    found: list[str] = []
    for line in _managers_in_order(text.split("\n")):
        if _OF_OTHERS.search(line):
            continue
        ages = ages or bool(_TABLE_HEAD.match(line))
        shown = _AGE_LINE.sub(r"\1<age>", line)
        if ages:
            shown = _AGE_CELL.sub("<age>", shown)
        found.append(_GAP.sub("  ", shown).rstrip(" "))
    return found


def _managers_in_order(lines: Iterable[str]) -> list[str]:
    """The entries of managedFields come in the order of their seconds: whether two have the same is chance."""
    found: list[str] = []
    left = deque(lines)
    while left:
        found.append(left.popleft())
        if found[-1].strip() != "managedFields:":
            continue
        indent = found[-1].partition("m")[0]
        entries: list[list[str]] = []
        while left and left[0].startswith((f"{indent}- ", f"{indent}  ")):
            if left[0].startswith(f"{indent}- "):
                entries.append([])
            entries[-1].append(left.popleft())
        found += chain.from_iterable(sorted(entries, key=partial(_manager, start=len(indent) + 2)))
    return found


def _manager(entry: list[str], *, start: int) -> list[str]:
    """The fields that identify an entry of managedFields."""
    told = dict(line[start:].partition(": ")[::2] for line in entry)
    return [told.get(name, "") for name in ("operation", "manager", "apiVersion", "subresource")]
