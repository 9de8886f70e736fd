"""Shards: lists and watches of a range of hashes, with the feature gate on; and off, where the parameter is ignored.

Hashes are of names, so the namespaces of these scenarios have the same names on both servers.
"""

from __future__ import annotations

from typing import Any

from conformance.boats import GROUP, PARTIAL, TABLE, boat, installed
from conformance.bodies import NAMESPACE, configmap, event, merged, namespace, secret
from conformance.scenario import (
    Close,
    OpenWatch,
    Scenario,
    Step,
    delete,
    frames,
    get,
    initial,
    patch,
    post,
    scenario as ungated,
    watch,
)

from steersman.wire import SHARD_GATE, HashRange, ShardField, ShardSelector, shard_hash

ROWS = "Shards"
PROTOBUF = "application/vnd.kubernetes.protobuf"
PARTIAL_LIST = PARTIAL.replace("PartialObjectMetadata", "PartialObjectMetadataList")
#: A kind of which no other scenario here has objects.
EMPTY = "/api/v1/podtemplates"
LOW, HIGH, END = "'0x0000000000000000'", "'0x8000000000000000'", "'0x10000000000000000'"
WHOLE = f"shardRange(object.metadata.uid, {LOW}, {END})"
UID = "object.metadata.uid"


def scenario(name: str, *steps: Step | list[Step], rows: str = ROWS) -> Scenario:
    """A scenario on servers with the gate on."""
    return ungated(name, rows, *steps, gates=(SHARD_GATE,))


class Places:
    """Two namespaces of one scenario, and the shards that hold the first, the second, both and none."""

    def __init__(self, scenario: str) -> None:
        self.one, self.two = f"shards-{scenario}-one", f"shards-{scenario}-two"
        self.first, self.second = (self.shard(name) for name in (self.one, self.two))
        self.both = self.shard(self.one, self.two)
        start = shard_hash(self.one) + 1
        self.none = str(ShardSelector("namespace", (HashRange(start, start + 1),)))
        self.made = [post(NAMESPACE, namespace(name)) for name in (self.one, self.two)]

    def shard(self, *names: str, field: ShardField = "namespace") -> str:
        hashes = [shard_hash(name) for name in names]
        return str(ShardSelector(field, tuple(HashRange(each, each + 1) for each in hashes)))

    def path(self, place: str, resource: str = "configmaps") -> str:
        return f"/api/v1/namespaces/{place}/{resource}"

    def filled(self, names: str = "ab", resource: str = "configmaps", body: Any = configmap) -> list[Step]:
        """An object of each name in each namespace."""
        return [
            post(self.path(place, resource), body(name), as_=f"{name}{index}")
            for name in names
            for index, place in enumerate((self.one, self.two))
        ]


def _listing() -> Scenario:
    places = Places("listing")
    everywhere = "/api/v1/configmaps"
    return scenario(
        "listing",
        places.made,
        places.filled(),
        [get(everywhere, shardSelector=each) for each in (places.first, places.second, places.both, places.none)],
        [
            get(places.path(place), shardSelector=each)
            for place in (places.one, places.two)
            for each in (places.first, places.none, WHOLE, "")
        ],
        [get(everywhere, accept=form, shardSelector=places.first) for form in (TABLE, PARTIAL_LIST, PROTOBUF)],
        get(everywhere, shardSelector=places.first, resourceVersion="0"),
        get(everywhere, shardSelector=places.first, resourceVersion="$rv:a1", resourceVersionMatch="Exact"),
        get(everywhere, shardSelector=places.first, resourceVersion="$rv:a0", resourceVersionMatch="NotOlderThan"),
        get(everywhere, shardSelector=places.first, fieldSelector="metadata.name=a"),
        get(everywhere, shardSelector=places.first, fieldSelector="metadata.name!=a"),
        get(everywhere, shardSelector=places.first, fieldSelector=f"metadata.namespace={places.two}"),
        get(everywhere, shardSelector=places.first, fieldSelector=f"metadata.namespace={places.one}"),
        get(places.path(places.one), shardSelector=places.none, fieldSelector="metadata.name=a"),
        get(places.path(places.one), shardSelector=WHOLE, fieldSelector="metadata.name=a"),
        get(everywhere, shardSelector=places.first, labelSelector="!nothing"),
        get(f"{places.path(places.one)}/a", shardSelector=places.none),
    )


def _cluster_scoped() -> Scenario:
    """The empty namespace has a hash too: all objects without one are in the same shard."""
    places = Places("cluster-scoped")
    mine = {"labelSelector": "shards=cluster-scoped"}
    return scenario(
        "cluster-scoped",
        post(NAMESPACE, namespace(places.one, labels={"shards": "cluster-scoped"})),
        get(NAMESPACE, shardSelector=places.shard(""), **mine),
        get(NAMESPACE, shardSelector=places.first, **mine),
        get(NAMESPACE, shardSelector=WHOLE, **mine),
        watch("w", NAMESPACE, shardSelector=places.first, resourceVersion="1"),
        Close("w"),
    )


def _paging() -> Scenario:
    """The server counts objects of other shards among those that remain."""
    places = Places("paging")
    everywhere = "/api/v1/secrets"
    steps: list[Step] = []
    for limit in (1, 2, 3, 5):
        steps += [
            get(everywhere, shardSelector=places.second, limit=limit, as_=f"page{limit}"),
            get(everywhere, shardSelector=places.second, limit=limit, continue_=f"$continue:page{limit}", as_="next"),
            get(everywhere, shardSelector=places.second, limit=limit, continue_="$continue:next"),
        ]
    return scenario(
        "paging",
        places.made,
        places.filled("abcd", "secrets", secret),
        steps,
        get(everywhere, shardSelector=places.second, limit=1, accept=TABLE),
        get(everywhere, shardSelector=places.second, limit=1, accept=PARTIAL_LIST),
        get(everywhere, shardSelector=places.second, limit=1, labelSelector="!nothing"),
        get(everywhere, shardSelector=places.second, limit=1, resourceVersion="0"),
        get(everywhere, limit=1, continue_="$continue:page1"),
        get(everywhere, limit=1, continue_="$continue:page1", shardSelector=places.first),
        get(everywhere, shardSelector=places.none, limit=1),
        get(places.path(places.one, "secrets"), shardSelector=WHOLE, limit=1),
        get(places.path(places.one, "secrets"), shardSelector=places.first, limit=4),
        rows=f"{ROWS}, List chunking",
    )


def _events() -> Scenario:
    """kube-apiserver does not keep Events in memory: their lists and watches are filtered all the same."""
    places = Places("events")
    everywhere = "/api/v1/events"

    def about(name: str) -> Any:
        tree = event(name)
        place = places.one if name.startswith("one") else places.two
        return merged(tree, {"involvedObject": {"namespace": place}})

    made: list[Step] = [
        post(places.path(places.two if name.startswith("two") else places.one, "events"), about(name), as_=name)
        for name in ("one-a", "one-b", "two-a", "one-c", "two-b", "two-c", "two-d")
    ]
    later: list[Step] = [
        post(places.path(place, "events"), about(name))
        for place, name in ((places.one, "one-x"), (places.two, "two-x"))
    ]
    return scenario(
        "events",
        places.made,
        made,
        get(everywhere, shardSelector=places.second),
        [get(everywhere, shardSelector=places.second, limit=limit) for limit in (1, 2, 3, 4)],
        watch("plain", everywhere, shardSelector=places.second, resourceVersion="$rv:two-d"),
        watch(
            "field", everywhere, shardSelector=places.second, resourceVersion="$rv:two-d", fieldSelector="type=Normal"
        ),
        watch("label", everywhere, shardSelector=places.second, resourceVersion="$rv:two-d", labelSelector="!nothing"),
        later,
        frames("plain", 1),
        frames("field", 1),
        frames("label", 1),
        watch("initial", places.path(places.two, "events"), shardSelector=places.second),
        frames("initial", 5),
        rows=f"{ROWS}, Watch stream",
    )


def _watching() -> Scenario:
    places = Places("watching")
    everywhere = "/api/v1/configmaps"
    return scenario(
        "watching",
        places.made,
        places.filled("a"),
        watch("w", everywhere, shardSelector=places.first, resourceVersion="$rv:a1"),
        watch("two", everywhere, shardSelector=places.both, resourceVersion="$rv:a1"),
        watch("table", everywhere, shardSelector=places.first, resourceVersion="$rv:a1", accept=TABLE),
        watch("partial", everywhere, shardSelector=places.first, resourceVersion="$rv:a1", accept=PARTIAL),
        watch("label", everywhere, shardSelector=places.first, resourceVersion="$rv:a1", labelSelector="in=yes"),
        watch("place", places.path(places.one), shardSelector=WHOLE, resourceVersion="$rv:a1"),
        watch("none", places.path(places.one), shardSelector=places.none, resourceVersion="$rv:a1"),
        places.filled("b"),
        [
            patch(f"{places.path(place)}/a", {"metadata": {"labels": {"in": "yes"}}})
            for place in (places.one, places.two)
        ],
        [patch(f"{places.path(place)}/a", {"metadata": {"labels": None}}) for place in (places.one, places.two)],
        [delete(f"{places.path(place)}/b") for place in (places.one, places.two)],
        frames("w", 4),
        frames("two", 8),
        frames("table", 4),
        frames("partial", 4),
        frames("label", 2),
        frames("place", 4),
        rows=f"{ROWS}, Watch stream",
    )


def _watch_list() -> Scenario:
    places = Places("watch-list")
    everywhere = "/api/v1/configmaps"
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    return scenario(
        "watch-list",
        places.made,
        places.filled(),
        watch("w", everywhere, shardSelector=places.first, **query),
        initial("w"),
        watch("none", everywhere, shardSelector=places.none, **query),
        initial("none"),
        watch("plain", everywhere, shardSelector=places.second),
        frames("plain", 2),
        watch("zero", places.path(places.two), shardSelector=WHOLE, resourceVersion="0"),
        frames("zero", 2),
        places.filled("c"),
        frames("w", 1),
        frames("plain", 1),
        frames("zero", 1),
        rows=f"{ROWS}, WatchList",
    )


def _deleting() -> Scenario:
    """With the gate on, a deletion keeps what is in other shards; a client cannot know that it is on."""
    places = Places("deleting")
    path = places.path(places.one)
    return scenario(
        "deleting",
        places.made,
        places.filled(),
        delete(path, shardSelector=places.none),
        delete(path, shardSelector="nonsense"),
        get(path),
        delete(path, shardSelector=places.first),
        get(path),
        get(places.path(places.two)),
        rows=f"{ROWS}, deletecollection",
    )


def _custom() -> Scenario:
    """The lists of custom resources are filtered, but do not tell their shard."""
    places = Places("custom")
    boats = f"/apis/{GROUP}/v1/boats"
    made: list[Step] = [
        post(boats.replace("boats", f"namespaces/{place}/boats"), boat(name), as_=name)
        for place, name in ((places.one, "a"), (places.two, "b"))
    ]
    return scenario(
        "custom",
        places.made,
        installed(),
        made,
        get(boats, shardSelector=places.first),
        get(boats, shardSelector=places.none),
        get(boats, shardSelector=places.second, limit=1),
        get(boats, shardSelector=places.first, limit=1),
        get(boats, shardSelector="nonsense"),
        watch("w", boats, shardSelector=places.first, resourceVersion="$rv:b"),
        [
            patch(boats.replace("boats", f"namespaces/{place}/boats/{name}"), {"metadata": {"labels": {"x": "y"}}})
            for place, name in ((places.one, "a"), (places.two, "b"))
        ],
        frames("w", 1),
        rows=f"{ROWS}, Kinds",
    )


SPELLINGS = (
    f"  shardRange({UID}, {LOW}, {HIGH})  ",
    f'shardRange({UID},"0x0000000000000000",r{HIGH})',
    f"(shardRange({UID},{LOW},{HIGH}))",
    f"shardRange({UID},\n{LOW},{END}) // comment",
    f"object.shardRange({UID},{LOW},{HIGH})",
    f"shardRange({UID},{LOW},'\\x30x8000000000000000')",
    f"shardRange({UID},{HIGH},{END}) || shardRange({UID},{LOW},{HIGH})",
    f"shardRange({UID},{LOW},{HIGH}) || shardRange({UID},{LOW},{HIGH})",
    f"shardRange({UID},{LOW},{HIGH}) || (shardRange({UID},{LOW},{HIGH})||shardRange({UID},{HIGH},{END}))",
    "",
)

REFUSED = (
    " ",
    "\u00a0",
    f"shardRange({UID},{LOW},{HIGH}) || shardRange(object.metadata.namespace,{LOW},{HIGH})",
    *(
        f"shardRange({field},{LOW},{HIGH})"
        for field in (
            "object.metadata.name",
            "object",
            ".object.metadata.uid",
            "1",
            "object.metadata.uid.x()",
            'object.metadata["uid"]',
            "x().y",
            "[]",
            "{}",
            "A{}",
        )
    ),
    *(
        f"shardRange({UID},{bound},{HIGH})"
        for bound in (
            *("0", "0u", "1.5", "true", "null", "b'0x'", "x", "x.y", "x()", "[]", "{}", "-x"),
            *("'0000000000000000'", "'0x'", "'0x000000000000000000'", "'0x0g'", "'0x0é'", "'0xéééééééééé'"),
            *("'0x0\"'", "'0x0A'", "'0x0'", "'0xff'", "'0x00000000000000000'", END, HIGH, "''", "'\\x300x'"),
        )
    ),
    f"shardRange({UID},{LOW},8)",
    f"shardRange({UID},{LOW},'8000000000000000')",
    f"shardRange({UID},{LOW},'0x20000000000000000')",
    f"shardRange({UID},'0xffffffffffffffff',{LOW})",
    f"shardRange({UID},{END},{END})",
    f"shardRange({UID},{LOW})",
    "shardRange()",
    "shardRange(1,2,3,4)",
    "object.shardRange(1,2)",
    f".shardRange({UID},{LOW},{HIGH})",
    "invalidFunc(object.metadata.uid, '0x00', '0x80')",
    f"invalidFunc() || shardRange({UID},{LOW})",
    f"shardRange({UID},{LOW}) || invalidFunc()",
    f"{WHOLE} && {WHOLE}",
    f"!{WHOLE}",
    *("object.metadata.uid", "object", "'text'", "1", "-1", "true", "null", "[]", "{}", "A{}"),
    *("a ? b : c", "a[0]", "a.?b", "a[?0]", "-x", "1 + 2", "a in b", "a > b", "a.b()"),
    *("a.all(x, x)", "has(a.b)", "has(a)", "all(x, y, z)"),
    *("nonsense!", "shardRange(", "shardRange", f"{WHOLE} ||", f"|| {WHOLE}", f"{WHOLE} {WHOLE}"),
    f"shardRange({UID},{LOW},{HIGH},)",
    f"shardRange({UID},{LOW} {HIGH})",
    f"shardRange({UID}; {LOW},{HIGH})",
    f"shardRange({UID},'0x0000000000000000, 0x8000000000000000)",
    f"shardRange(object..uid,{LOW},{HIGH})",
    f"{WHOLE}{{}}",
    *(f"{opened * 400}{WHOLE}{closed * 400}" for opened, closed in ("()", "[]", ("f(", ")"))),
    *(f"a{step * 400}" for step in (".b", "+1", "?b:a", "||a")),
    *("x | y", "#", "$", "a b c", ")", "if", "object.if", "x == ", "'\\q'", "`a`", "object.`a`", "((a", "(a", "a\nb"),
)

#: Other wrong options, to show which is found first.
WRONG = (
    {"labelSelector": "a=b=c"},
    {"fieldSelector": "x"},
    {"fieldSelector": "nothing=x"},
    {"resourceVersion": "x"},
    {"resourceVersion": "1", "resourceVersionMatch": "Other"},
    {"limit": "x"},
    {"continue_": "x"},
    {"sendInitialEvents": "true"},
    {"accept": "application/json;as=Nothing;v=v1;g=meta.k8s.io"},
)


def _off() -> Scenario:
    """With the gate off, any text is ignored, and a deletion deletes everything."""
    places = Places("off")
    path = places.path(places.one)
    return ungated(
        "off",
        f"{ROWS}, deletecollection",
        places.made,
        places.filled(),
        [get(path, shardSelector=each) for each in (places.first, places.none, "nonsense", " ")],
        watch("w", path, shardSelector=places.none, resourceVersion="$rv:b1"),
        post(path, configmap("c")),
        frames("w", 1),
        delete(path, shardSelector=places.none),
        frames("w", 3),
        get(path),
    )


SCENARIOS: list[Scenario] = [
    _listing(),
    _cluster_scoped(),
    _paging(),
    _events(),
    _watching(),
    _watch_list(),
    _deleting(),
    _custom(),
    _off(),
    scenario("spellings", [get(EMPTY, shardSelector=each) for each in SPELLINGS]),
    scenario("refused", [get(EMPTY, shardSelector=each) for each in REFUSED], rows=f"{ROWS}, Status errors"),
    scenario(
        "refused-watches",
        [OpenWatch(f"w{index}", watch("w", EMPTY, shardSelector=each).call) for index, each in enumerate(REFUSED[:8])],
        rows=f"{ROWS}, Watch errors",
    ),
    scenario(
        "refused-with-other-options",
        [get(EMPTY, shardSelector="nonsense", **wrong) for wrong in WRONG],
        [
            OpenWatch(f"w{index}", watch("w", EMPTY, shardSelector="x", **wrong).call)
            for index, wrong in enumerate(WRONG)
        ],
        rows=f"{ROWS}, Status errors",
    ),
]
