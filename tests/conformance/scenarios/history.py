"""What is answered about versions that the server has forgotten."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from conformance.bodies import CM, POD, configmap
from conformance.scenario import ends, frames, get, post, scenario, watch

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
TOKEN = urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":2,"start":"a\\u0000"}').decode().rstrip("=")
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

SCENARIOS = [
    scenario("watch", "Watch errors", watch("w", CM, resourceVersion="1"), ends("w"), forgotten=True),
    scenario("watch-of-pods", "Watch errors", watch("w", POD, resourceVersion="2"), ends("w"), forgotten=True),
    scenario(
        "watch-as-a-table",
        "Watch errors, Table",
        watch("w", CM, resourceVersion="1", accept=TABLE),
        ends("w"),
        forgotten=True,
    ),
    scenario(
        "watch-as-metadata",
        "Watch errors, PartialObjectMetadata",
        watch("w", CM, resourceVersion="1", accept=PARTIAL),
        ends("w"),
        forgotten=True,
    ),
    scenario(
        "watch-with-a-selector",
        "Watch errors, Selectors",
        watch("w", CM, resourceVersion="1", labelSelector="a=b"),
        ends("w"),
        forgotten=True,
    ),
    scenario(
        "watch-with-initial-events",
        "Watch errors, WatchList",
        post(CM, configmap()),
        watch("w", CM, resourceVersion="1", **INITIAL),
        frames("w", 2),
        forgotten=True,
    ),
    scenario(
        "exact-list",
        "resourceVersion, Status errors",
        post(CM, configmap()),
        get(CM, resourceVersion="2", resourceVersionMatch="Exact"),
        get(CM, resourceVersion="2", resourceVersionMatch="Exact", limit=1),
        get(CM, resourceVersion="2", limit=1),
        forgotten=True,
    ),
    scenario(
        "pieces",
        "List chunking, Status errors",
        *(post(CM, configmap(name)) for name in "abcd"),
        get(CM, limit=2, continue_=TOKEN, as_="gone"),
        get(CM, limit=2, continue_="$continue:gone", as_="again"),
        get(CM, limit=2, continue_="$continue:again"),
        forgotten=True,
    ),
]
