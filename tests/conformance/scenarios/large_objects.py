"""Objects with as many values as can be stored, and objects that are too large."""

from __future__ import annotations

import json
from typing import Any

from conformance.bodies import CM, POD, configmap, pod
from conformance.scenario import get, patch, post, put, scenario
from conformance.scenarios.custom import ONE, SITES, site

#: What etcd takes in one request, without the rest of an object.
_STORED = 1_572_864
#: A size with very many values for which a busy engine still has time.
_MANY = 500_000


def _site_of(item: str, size: int) -> bytes:
    """A site whose settings repeat an item until they have so many bytes."""
    many = ",".join([item] * (size // (len(item) + 1)))
    return json.dumps(site(settings="@")).replace('"@"', f'{{"s":[{many}]}}').encode()


def _pod_of(count: int) -> dict[str, Any]:
    """A pod with so many containers, whose managed fields are too large to be stored with it."""
    tree = pod()
    # not as an argument, which `pod` would copy: every worker of a run makes these objects
    tree["spec"]["containers"] = [
        {"name": f"c{number}", "image": "i", "terminationMessagePath": "/"} for number in range(count)
    ]
    return tree


SCENARIOS = [
    *(
        scenario(f"custom-{name}", "Storage", post(SITES, _site_of(item, _MANY)))
        for name, item in {"numbers": "1", "empty-lists": "[]", "empty-objects": "{}", "objects": '{"a":1}'}.items()
    ),
    # etcd stores built-in kinds as protobuf: as JSON these objects have more than 1.5 MiB
    scenario("pod-with-20000-containers", "Storage", post(POD, _pod_of(20_000))),
    scenario("map-with-a-million-line-feeds", "Storage", post(CM, configmap(data={"a": "\n" * 1_000_000}))),
    scenario("too-large-pod", "Storage, Status errors", post(POD, _pod_of(45_000))),
    scenario("too-large", "Storage, Status errors", post(SITES, _site_of("1", _STORED)), post(SITES, _site_of('"a"', _STORED))),
    scenario(
        "custom-changed", "Storage, Update, Patch",
        post(SITES, site()), put(ONE, _site_of("1", 400_000)), patch(ONE, b'{"spec":{"settings":{"s":[%b1]}}}' % (b"2," * 200_000)),
        patch(ONE, b'[{"op":"replace","path":"/spec/settings/s","value":[%b1]}]' % (b"3," * 200_000), "json"), get(ONE),
    ),
]  # fmt: skip
