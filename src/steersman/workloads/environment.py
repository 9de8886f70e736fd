"""The environment of a process: what it inherits, files of variables, and the variables of its spec.

Guarantees
- Later sources win: the ambient environment, the files in their order, then ``spec.env`` with its templates filled in.
- On a status, values that look like secrets are masked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from steersman.workloads.kinds import AmbientEnvironment, EnvVar

#: What a status shows instead of a secret.
MASK: Final = "********"

_SECRET_NAME: Final = re.compile(
    r"(?i)(secret|token|passw(or)?d|passphrase|pwd$|credential|api_?key|private_?key|access_?key|account_?key"
    r"|_key$|^key$|auth(?!or|_?url|_?mode|_?type|_?enabled)|connection_?strings?(_|$)|cookie|sas$)"
)
#: Names that match by accident: the working directory, and paths and switches that are no secrets.
_PLAIN_NAME: Final = re.compile(r"(?i)^(pwd|oldpwd|.*(_file|_path|_dir|_sock|_socket))$")
_SECRET_VALUE: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|^eyJ[\w-]+\.[\w-]+\.[\w-]*$"  # a JSON web token
    r"|^[a-zA-Z][\w+.-]*://[^/\s:@]*:[^/\s@]+@"  # a URL with a password
    r"|(?i:(password|pwd|accountkey|sharedaccesskey)\s*=\s*[^;\s])"  # a connection string
    r"|^(gh[pousr]_|github_pat_|sk-|xox[abp]-|AKIA)[\w-]{8,}"
)
_LINE: Final = re.compile(r"\s*(?:export\s+)?([^=\s#]+)\s*=[^\S\n]*(.*?)\s*$")


def inherits(ambient: AmbientEnvironment | None) -> bool:
    """Whether a program starts with the environment of the control plane, by the field ``ambientEnvironment`` of its spec."""
    return ambient is None or ambient.behavior == "Inherit"


def parse_env_file(text: str, path: str) -> dict[str, str]:
    r"""The variables of a file of lines ``NAME=value``. Raises ValueError with the line that is neither that nor a comment.

    A value can stand in single quotes, which keep it as it is, or in double quotes, where ``\n`` begins a line.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise ValueError(f"{path}, line {number}: write NAME=value")
        name, value = match.groups()
        if len(value) >= 2 and value[0] == value[-1] == "'":
            value = value[1:-1]
        elif len(value) >= 2 and value[0] == value[-1] == '"':
            value = re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), value[1:-1])
        else:
            value = re.sub(r"(^|\s)#.*$", "", value).rstrip()
        variables[name] = value
    return variables


def effective_environment(
    ambient: Mapping[str, str],
    files: Iterable[Mapping[str, str]],
    variables: Sequence[EnvVar],
    expand: Callable[[str], str],
) -> dict[str, str]:
    """The environment that a process starts with. ``expand`` fills in the templates of ``variables``."""
    environment = dict(ambient)
    for file in files:
        environment |= file
    for variable in variables:
        environment[variable.name] = expand(variable.value)
    return environment


def shown_environment(environment: Mapping[str, str]) -> list[EnvVar]:
    """The environment as a status shows it: sorted, without secrets, and as text even if a part of it is none."""
    return [EnvVar(name=_text(name), value=masked(name, _text(environment[name]))) for name in sorted(environment)]


def _text(value: str) -> str:
    """A value in which a replacement character stands for each byte that is not UTF-8."""
    return value if value.isascii() else os.fsencode(value).decode(errors="replace")


def masked(name: str, value: str) -> str:
    """The value of a variable, or the mask if its name or its value looks like a secret."""
    is_secret = _SECRET_NAME.search(name) and not _PLAIN_NAME.match(name)
    return MASK if value and (is_secret or _SECRET_VALUE.search(value)) else value
