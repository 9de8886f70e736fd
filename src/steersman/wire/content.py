"""Content negotiation: media types, and what a client accepts, in its order of quality."""

import re

import msgspec

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

PARTIAL_OBJECT_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_OBJECT_METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#: The response has the same parameters, or is the older document of a single group.
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PARAMETER = re.compile(
    r"\s*;\s*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:([!#$%&'*+.^_`|~0-9A-Za-z/:-]+)|\"((?:[^\"\\]|\\.)*)\"))?"
)
# the text between commas; a comma inside quotes does not count
_CLAUSE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
#: A longer header is truncated: no client of the Kubernetes API sends so many clauses.
_ACCEPT_MAX = 8192

# parameters that request another representation of the same object
_REPRESENTATION = ("as", "g", "v")


class MediaType(msgspec.Struct, frozen=True):
    """A media type such as `application/json;as=Table`; `quality` is the `q` of an Accept clause."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    quality: float = 1.0

    def parameter(self, name: str) -> str | None:
        """The value of a parameter, or None."""
        for present, value in self.parameters:
            if present == name:
                return value
        return None

    @property
    def representation(self) -> tuple[str, str, str]:
        """The requested form of the object: `as`, `g` and `v`; three empty strings for the object itself."""
        as_, group, version = (self.parameter(name) or "" for name in _REPRESENTATION)
        return (as_, group, version) if as_ else ("", "", "")


def parse_media_type(text: str) -> MediaType:
    """Parse a Content-Type, or one clause of an Accept header; raises ValueError if invalid."""
    name, _, _ = text.partition(";")
    position = len(name)
    name = name.strip().lower()
    kind, slash, subtype = name.partition("/")
    if not slash or not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        raise ValueError(f"{text[:80]!r} is not a media type")
    parameters: list[tuple[str, str]] = []
    quality = 1.0
    while position < len(text):
        found = _PARAMETER.match(text, position)
        if found is None:
            if text[position:].isspace():
                break
            raise ValueError(f"{text[:80]!r} has an invalid parameter")
        position = found.end()
        key, plain, quoted = found.groups()
        if key is None:
            continue
        value = plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted)
        if key.lower() == "q":
            quality = _parse_quality(value)
        else:
            parameters.append((key.lower(), value))
    return MediaType(name, tuple(parameters), quality)


def _parse_quality(text: str) -> float:
    if not re.fullmatch(r"[01](?:\.[0-9]{0,3})?", text) or float(text) > 1:
        raise ValueError(f"{text[:20]!r} is not a quality between 0 and 1")
    return float(text)


def parse_accept(header: str | None) -> tuple[MediaType, ...]:
    """Parse an Accept header, best first; invalid clauses and those with quality 0 are dropped."""
    clauses: list[MediaType] = []
    for text in _CLAUSE.findall((header or "*/*")[:_ACCEPT_MAX]):
        try:
            clause = parse_media_type(text)
        except ValueError:
            continue
        if clause.quality > 0:
            clauses.append(clause)
    # Of equal quality, a wildcard counts less than a media type.
    return tuple(sorted(clauses, key=lambda clause: (-clause.quality, clause.name.endswith("/*"))))
