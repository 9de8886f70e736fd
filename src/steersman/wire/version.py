"""The version of a server, from `/version`.

Guarantee: `major` and `minor` are comparable numbers, even if a distribution writes "36+".
"""

import re

import msgspec

from steersman.errors import UNREADABLE, ProtocolError


class _Info(msgspec.Struct, rename="camel"):
    git_version: str
    major: str = ""
    minor: str = ""
    git_commit: str = ""
    build_date: str = ""
    platform: str = ""


class ServerVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The Kubernetes version of a server; the numbers are 0 if it does not report them."""

    major: int
    minor: int
    git_version: str
    git_commit: str = ""
    build_date: str = ""
    platform: str = ""

    def at_least(self, major: int, minor: int) -> bool:
        """Whether the server has this version or a later one."""
        return (self.major, self.minor) >= (major, minor)

    def __str__(self) -> str:
        return self.git_version


_decoder = msgspec.json.Decoder(_Info)
_GIT_VERSION = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")


def parse_version(body: bytes) -> ServerVersion:
    """Parse the response of `/version`."""
    try:
        info = _decoder.decode(body)
    except UNREADABLE as error:
        raise ProtocolError(f"the response of /version is not a Kubernetes version: {error}") from None
    numbers = _GIT_VERSION.match(info.git_version)
    return ServerVersion(
        major=_number(info.major, numbers and numbers[1]),
        minor=_number(info.minor, numbers and numbers[2]),
        git_version=info.git_version,
        git_commit=info.git_commit,
        build_date=info.build_date,
        platform=info.platform,
    )


def _number(text: str, otherwise: str | None) -> int:
    found = _NUMBER.match(text)
    return int(found[0] if found else otherwise or 0)
