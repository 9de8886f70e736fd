"""Names, labels, annotations, owners, finalizers, and what a writer may not set."""

from __future__ import annotations

from conformance.bodies import CLUSTER_KINDS, CM, KINDS, POD, SERVICE, configmap, merged, pod, service
from conformance.scenario import delete, frames, get, patch, post, put, scenario, watch

ONE = f"{CM}/a"

BAD_NAMES = (
    "",
    "A",
    "a_b",
    "-a",
    "a-",
    ".a",
    "a..b",
    "a/b",
    "a b",
    "ä",
    "a" * 254,
    "a" * 64,
    "1a",
    "a.b",
    "..",
    "%41",
    "a%b",
)
BAD_PREFIXES = ("A-", "-", "a_", "a.", "a" * 300, "a" * 60, "1-", "..")
BAD_LABELS = {
    "bad-key": {"a b": "c"},
    "empty-key": {"": "c"},
    "long-key": {"a" * 64: "c"},
    "prefix": {"Example.com/a": "b"},
    "empty-prefix": {"/a": "b"},
    "two-slashes": {"a/b/c": "d"},
    "bad-value": {"a": "b c"},
    "long-value": {"a": "b" * 64},
    "dash-at-the-end": {"a": "b-"},
    "bad-key-and-value": {"a b": "c d"},
    "good-prefix": {"example.com/a": "b", "a": ""},
}
BAD_OWNERS = {
    "nothing-set": {},
    "no-uid": {"apiVersion": "v1", "kind": "ConfigMap", "name": "o"},
    "no-kind": {"apiVersion": "v1", "name": "o", "uid": "u"},
    "no-name": {"apiVersion": "v1", "kind": "ConfigMap", "uid": "u"},
    "bad-version": {"apiVersion": "a/b/c", "kind": "ConfigMap", "name": "o", "uid": "u"},
    "no-version": {"kind": "ConfigMap", "name": "o", "uid": "u"},
    "an-event": {"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"},
    "good": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "o",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    },
}


def _named(path, body, name):
    return post(path, merged(body, {"metadata": {"name": name}}), dryRun="All")


def _generated(path, body, prefix):
    return post(path, merged(body, {"metadata": {"name": None, "generateName": prefix}}), dryRun="All")


SCENARIOS = [
    *(
        scenario(f"names-of-a-{kind}", "Metadata, Status errors", *(_named(path, body, name) for name in BAD_NAMES))
        for kind, (path, body) in {**KINDS, **CLUSTER_KINDS}.items()
    ),
    *(
        scenario(f"prefixes-of-a-{kind}", "Metadata, Status errors", *(_generated(path, body, prefix) for prefix in BAD_PREFIXES))
        for kind, (path, body) in {**KINDS, **CLUSTER_KINDS}.items()
    ),
    *(
        scenario(
            f"labels-{name}",
            "Metadata, Status errors",
            post(CM, configmap(labels=labels)),
            post(CM, configmap("b", annotations=labels)),
            post(CM, configmap("c")),
            patch(f"{CM}/c", {"metadata": {"labels": labels}}),
            patch(f"{CM}/c", {"metadata": {"annotations": labels}}),
        )
        for name, labels in BAD_LABELS.items()
    ),
    *(
        scenario(
            f"owner-{name}",
            "Metadata, Status errors",
            post(CM, configmap(ownerReferences=[owner])),
            post(CM, configmap("b")),
            patch(f"{CM}/b", {"metadata": {"ownerReferences": [owner]}}),
        )
        for name, owner in BAD_OWNERS.items()
    ),
    scenario(
        "two-owners",
        "Metadata, Status errors",
        *(
            post(CM, configmap(f"a{index}", ownerReferences=[
                {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{i}", "uid": f"u{i}", "controller": is_controller}
                for i, is_controller in enumerate(controllers)
            ]))
            for index, controllers in enumerate([(True, True), (True, False), (False, False), (True, True, True)])
        ),
        post(CM, configmap("same", ownerReferences=[
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
        ])),
    ),
    scenario(
        "finalizer-names",
        "Metadata, Status errors",
        *(
            post(CM, configmap(f"a{index}", finalizers=finalizers))
            for index, finalizers in enumerate((
                ["plain"], ["example.com/good"], ["Bad Name"], [""], ["orphan"], ["foregroundDeletion"], ["kubernetes"], ["a/b/c"],
                ["orphan", "foregroundDeletion"], ["example.com/x", "example.com/x"], ["example.com/" + "x" * 64],
            ))
        ),
    ),
    scenario(
        "set-by-the-server",
        "Metadata",
        post(CM, configmap("a", uid="11111111-2222-3333-4444-555555555555", creationTimestamp="2001-01-01T00:00:00Z", generation=7, selfLink="/a")),
        post(CM, configmap("b", deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=5)),
        post(CM, configmap("c", resourceVersion="1")),
        post(CM, configmap("d", resourceVersion="0")),
        post(CM, configmap("e", resourceVersion="")),
        patch(ONE, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}),
        patch(ONE, {"metadata": {"creationTimestamp": None}}),
        patch(ONE, {"metadata": {"generation": 9}}),
        patch(ONE, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        patch(ONE, {"metadata": {"deletionGracePeriodSeconds": 4}}),
        patch(ONE, {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}),
        patch(ONE, {"metadata": {"uid": None}}),
        patch(ONE, {"metadata": {"generateName": "x-"}}),
        patch(ONE, {"metadata": {"selfLink": "/b"}}),
        get(ONE),
        put(ONE, configmap("a", creationTimestamp="2001-01-01T00:00:00Z", generation=3)),
        get(CM),
    ),
    scenario(
        "generated-names",
        "Metadata",
        post(CM, configmap("", generateName="a-"), as_="a"),
        get(f"{CM}/$name:a"),
        post(CM, merged(configmap("", generateName="b-"), {"metadata": {"name": None}}), as_="b"),
        post(CM, configmap("c", generateName="c-")),
        post(CM, configmap("c", generateName="c-")),
        post(CM, configmap("", generateName="a" * 63), as_="d"),
        post(POD, merged(pod(""), {"metadata": {"generateName": "a" * 70}}), as_="e"),
        post(SERVICE, merged(service(""), {"metadata": {"generateName": "a" * 70}}), as_="f", dryRun="All"),
        patch(f"{CM}/$name:a", {"data": {"x": "y"}}),
        delete(f"{CM}/$name:a"),
        delete(f"{CM}/$name:b"),
        get(f"{CM}/$name:d"),
        get(CM),
    ),
    scenario(
        "writes-that-change-nothing",
        "No-op writes",
        post(CM, configmap(labels={"a": "b"}), as_="a"),
        watch("w", CM, resourceVersion="$rv:a"),
        put(ONE, configmap(labels={"a": "b"})),
        put(ONE, merged(configmap(labels={"a": "b"}), {"metadata": {"resourceVersion": "$rv:a"}})),
        patch(ONE, {"data": {"key": "value"}}),
        patch(ONE, {"data": {"missing": None}}),
        patch(ONE, {}),
        patch(ONE, [], "json"),
        patch(ONE, [{"op": "test", "path": "/data/key", "value": "value"}], "json"),
        patch(ONE, [{"op": "replace", "path": "/data/key", "value": "value"}], "json"),
        patch(ONE, {"metadata": {"labels": {"a": "b"}}}, "strategic"),
        patch(ONE, {"metadata": {"annotations": {}}}),
        patch(ONE, {"metadata": {"annotations": None}}),
        get(ONE),
        patch(ONE, {"data": {"key": "other"}}),
        frames("w", 1),
    ),
    scenario(
        "changes-and-versions",
        "Update, resourceVersion",
        post(CM, configmap(), as_="first"),
        put(ONE, configmap(data={"key": "2"}, resourceVersion="$rv:first"), as_="second"),
        put(ONE, configmap(data={"key": "3"}, resourceVersion="$rv:first")),
        put(ONE, configmap(data={"key": "3"}, resourceVersion="0")),
        put(ONE, configmap(data={"key": "4"}, resourceVersion="")),
        put(ONE, configmap(data={"key": "5"}, resourceVersion="newest")),
        put(ONE, configmap(data={"key": "6"}, resourceVersion="-1")),
        put(ONE, configmap(data={"key": "6"}, resourceVersion="99999999")),
        patch(ONE, {"metadata": {"resourceVersion": "$rv:first"}, "data": {"key": "7"}}),
        patch(ONE, {"metadata": {"resourceVersion": "$rv:first"}}),
        patch(ONE, [{"op": "replace", "path": "/metadata/resourceVersion", "value": "$rv:second"}], "json"),
        patch(ONE, {"metadata": {"resourceVersion": None}, "data": {"key": "8"}}),
        patch(ONE, {"metadata": {"resourceVersion": "0"}, "data": {"key": "9"}}),
        patch(ONE, {"metadata": {"resourceVersion": "x"}, "data": {"key": "10"}}),
        put(ONE, configmap(uid="$uid:first", data={"key": "11"})),
        put(f"{CM}/b", configmap("b", resourceVersion="$rv:first")),
        put(f"{CM}/b", configmap("b", uid="$uid:first")),
        get(CM),
    ),
    scenario(
        "immutable-configmap",
        "Kinds, Update",
        post(CM, merged(configmap(), {"immutable": True})),
        patch(ONE, {"data": {"key": "other"}}),
        patch(ONE, {"binaryData": {"more": "YQ=="}}),
        patch(ONE, {"immutable": False}),
        patch(ONE, {"immutable": None}),
        patch(ONE, {"immutable": False, "data": None}),
        patch(ONE, {"metadata": {"labels": {"still": "possible"}}}),
        delete(ONE),
    ),
]  # fmt: skip
