"""Definitions, rules and conversions that are made to hurt: answered in time, never with a failure of the server's own."""

from __future__ import annotations

import copy

import pytest
from hostile.growth import held_by
from hostile.playing import furnish, running_server
from hostile.test_apply import APPLY, answered

from samples.eventually import eventually
from steersman.apiserver import ApiServer, MemoryStorage
from steersman.controlplane import ControlPlane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/a.example.com/v1/namespaces/hostile/things"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture(scope="module")
async def server():
    async with running_server() as server:
        yield server


def definition(*, group="a.example.com", versions=("v1",), schema=ANYTHING, **more):
    served = [
        {"name": name, "served": True, "storage": not at, "schema": {"openAPIV3Schema": schema}}
        for at, name in enumerate(versions)
    ]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": served, **more}
    return {"metadata": {"name": f"things.{group}"}, "spec": spec}


def ruled(*rules, **fields):
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}
    return {"type": "object", "properties": {"spec": spec}}


def thing(*, version="v1", name="a", group="a.example.com", **more):
    return {"apiVersion": f"{group}/{version}", "kind": "Thing", "metadata": {"name": name}, **more}


async def gone(server, name):
    await eventually(lambda: server.registry.find(name.partition(".")[2], "v1", "things") is None)
    for _ in range(1000):
        status, _ = await answered(server, "GET", f"{CRDS}/{name}")
        if status == 404:
            return
    raise AssertionError(f"{name} does not go")


NUMBERS = {"type": "array", "maxItems": 10, "items": {"type": "integer"}}
TEXT = {"type": "string", "maxLength": 10_000}
NINES = "9" * 5000


def folds(depth):
    return "".join(f"self.l.all(x{n}, " for n in range(depth)) + "x0 >= 0" + ")" * depth


#: A schema, and an object that has the best chance to hurt.
SCHEMAS = {
    "folds in folds": (ruled(folds(6), l=NUMBERS), {"l": list(range(10))}),
    "all that an object may cost": (
        ruled(*(f"self.l.all(x, self.l.all(y, x + y != {-n}))" for n in range(1, 200)), l=NUMBERS | {"maxItems": 150}),
        {"l": list(range(150))},
    ),
    "a text that grows": (
        ruled(f"self.s.replace('x', '{'y' * 1000}').replace('y', '{'z' * 1000}').replace('z', '{'x' * 1000}') != ''", s=TEXT | {"maxLength": 10}),
        {"s": "x" * 10},
    ),
    "a fraction of a billion digits": (ruled("'%.999999999f'.format([1.5]) != ''", s=TEXT), {"s": ""}),
    "numbers of thousands of digits": (
        ruled("int(self.s) > 0", "uint(self.s) > 0u", "duration(self.s + 's') > duration('1s')", "semver(self.s + '.1.1').major() > 0", "isSemver('1.1.1-' + self.s)", s=TEXT),
        {"s": NINES},
    ),
    "a quantity beyond floats": (ruled("quantity(self.s).asApproximateFloat() > 0.0", s=TEXT), {"s": "1e400"}),
    "an hour of days": (ruled("timestamp(0).getHours('+99:99') > 0", s=TEXT), {"s": ""}),
    "a long enum": (
        ruled("true", l={"type": "array", "items": {"type": "string", "enum": [f"e{n}" for n in range(20_000)]}}),
        {"l": [f"e{n}" for n in range(19_999, 0, -10)]},
    ),
    "a long enum, and nothing of it": (
        ruled("true", l={"type": "array", "items": {"type": "string", "enum": [f"e{n}" for n in range(20_000)]}}),
        {"l": ["no"] * 2000},
    ),
    "alternatives of alternatives": (ruled("true", s=TEXT | {"anyOf": [{"anyOf": [{"minLength": 1}] * 40}] * 40}), {"s": ""}),
    "thousands of rules": (ruled(*(f"self.s != '{n}'" for n in range(2000)), s=TEXT), {"s": ""}),
    "thousands of fields": (ruled("true", **{f"f{n}": {"type": "string"} for n in range(5000)}), {f"f{n}": "" for n in range(5000)}),
    "a pattern that backtracks": (ruled("true", s={"type": "string", "pattern": "^(a+)+$"}), {"s": "a" * 5000 + "!"}),
    "a rule that backtracks": (ruled("self.s.matches('^(a|a)*$')", s=TEXT), {"s": "a" * 5000 + "!"}),
    "a pattern that the object brings": (ruled("self.s.matches(self.p)", s=TEXT | {"maxLength": 64}, p=TEXT | {"maxLength": 64}), {"s": "a" * 60 + "!", "p": "^(a|a)*$"}),
    "a search that backtracks": (ruled("self.s.findAll('(x+x+)+y|x').size() >= 0", s=TEXT), {"s": "x" * 5000}),
    "a pattern with thousands of states": (ruled("true", s={"type": "string", "pattern": "(?:[ab]*a[ab]{200})c"}), {"s": "abbabaaab" * 20_000}),
    "thousands of patterns": (
        ruled("true", **{f"f{n}": {"type": "string", "pattern": f"([ab]*a[ab]{{{n % 400}}}){n}c"} for n in range(2000)}),
        {f"f{n}": "abbabaaab" * 50 for n in range(2000)},
    ),
    "a duration of zeros": (ruled("true", s={"type": "string", "format": "duration"}), {"s": "0" * 100_000}),
    "a long rule": (ruled("true" + " && true" * 10_000, s=TEXT), {"s": ""}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
async def test_an_object_of_a_hostile_schema_is_answered(server, name):
    schema, spec = SCHEMAS[name]
    status, told = await answered(server, "POST", CRDS, definition(schema=schema))
    assert status == 201, told
    status, _ = await answered(server, "POST", THINGS, thing(spec=spec))
    assert status in {201, 422}
    again = await answered(server, "PATCH", f"{THINGS}/a?fieldManager=b&force=true", thing(spec=spec), APPLY)
    assert again[0] in {200, 422}
    await answered(server, "DELETE", f"{CRDS}/things.a.example.com")
    await gone(server, "things.a.example.com")


RULES = {
    "folds in folds in folds": (ruled(folds(8), l=NUMBERS | {"maxItems": 1000})),
    "brackets": ruled("(" * 20_000 + "true" + ")" * 20_000, s=TEXT),
    "a long path": ruled("self" + ".a" * 20_000, s=TEXT),
    "a number of thousands of digits": ruled(f"{NINES} > 0", s=TEXT),
    "repeated more often than can be read": ruled(f"self.s.matches('a{{{NINES}}}')", s=TEXT),
    "a pattern that repeats as often": ruled("true", s=TEXT | {"pattern": f"a{{{NINES}}}"}),
    "a precision of as many digits": ruled(f"'%.{NINES}f'.format([1.5]) != ''", s=TEXT),
}


@pytest.mark.parametrize("name", RULES)
async def test_a_definition_that_asks_too_much_is_refused(server, name):
    status, _ = await answered(server, "POST", CRDS, definition(schema=RULES[name]))
    assert status == 422


async def test_definitions_that_come_and_go_leave_nothing_behind():
    async with running_server() as server:

        async def come_and_go(number):
            group = f"g{number % 3}.example.com"
            schema = ruled("self.s != 'a'", s=TEXT)
            assert (await answered(server, "POST", CRDS, definition(group=group, schema=schema)))[0] == 201
            path = f"/apis/{group}/v1/namespaces/hostile/things"
            assert (await answered(server, "POST", path, thing(group=group, spec={"s": "b"})))[0] == 201
            await answered(server, "DELETE", f"{CRDS}/things.{group}")
            await gone(server, f"things.{group}")

        for number in range(3):
            await come_and_go(number)
        before, registered = held_by(server), len(list(server.registry))
        for number in range(30):
            await come_and_go(number)
        assert held_by(server).more_than(before) == {}
        assert len(list(server.registry)) == registered


def _itself(obj):
    obj["spec"] = obj
    return obj


CONVERSIONS = {
    "raises": lambda obj: 1 // 0,
    "nothing": lambda obj: None,
    "a list": lambda obj: [obj],
    "no metadata": lambda obj: {"metadata": None},
    "labels that are none": lambda obj: obj | {"metadata": obj["metadata"] | {"labels": [1]}},
    "labels of numbers": lambda obj: obj | {"metadata": obj["metadata"] | {"labels": {"a": 1}}},
    "what is no JSON": lambda obj: obj | {"spec": object()},
    "an object that holds itself": _itself,
}


@pytest.mark.parametrize("name", CONVERSIONS)
async def test_a_conversion_that_goes_wrong_is_reported_and_leaves_the_object_alone(name):
    def convert(obj, to):
        return CONVERSIONS[name](copy.deepcopy(obj)) if to.endswith("v2") else obj

    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a.example.com"}}
    body = definition(versions=("v1", "v2"), conversion={"strategy": "Webhook", "webhook": webhook})
    async with (
        MemoryStorage() as storage,
        ApiServer(storage=storage, conversions={"things.a.example.com": convert}) as server,
    ):
        await furnish(server)
        await answered(server, "POST", CRDS, body)
        _, made = await answered(server, "POST", THINGS, thing(spec={"a": 1}))
        for method, target in (("GET", f"{THINGS}/a"), ("GET", THINGS), ("DELETE", f"{THINGS}/a")):
            status, told = await answered(server, method, target.replace("/v1/", "/v2/"))
            assert (status, told["message"][:47]) == (500, "conversion webhook for a.example.com/v1, Kind=T")
        assert (await answered(server, "GET", f"{THINGS}/a"))[1] == made
        await answered(server, "DELETE", f"{CRDS}/things.a.example.com")
        await gone(server, "things.a.example.com")


async def test_a_conversion_makes_no_other_object_of_an_object():
    def convert(obj, to):
        stolen = {"name": "b", "namespace": "kube-system", "uid": "c", "ownerReferences": [{"uid": "d"}]}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": stolen, "spec": {}}

    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a.example.com"}}
    async with (
        MemoryStorage() as storage,
        ApiServer(storage=storage, conversions={"things.a.example.com": convert}) as server,
    ):
        await furnish(server)
        conversion = {"strategy": "Webhook", "webhook": webhook}
        await answered(server, "POST", CRDS, definition(versions=("v1", "v2"), conversion=conversion))
        _, made = await answered(server, "POST", THINGS, thing())
        _, shown = await answered(server, "GET", f"{THINGS}/a".replace("/v1/", "/v2/"))
        assert shown["kind"] == "Thing"
        assert shown["metadata"] == made["metadata"]


async def test_an_owner_that_no_object_can_be_keeps_its_dependent_and_holds_up_no_other():
    async with ControlPlane() as plane:
        path = "/api/v1/namespaces/default/configmaps"
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "../../a", "uid": "b"}
        status, _ = await answered(plane.server, "POST", path, {"metadata": {"name": "a", "ownerReferences": [owner]}})
        assert status == 201
        await plane.settled()
        assert (await answered(plane.server, "GET", f"{path}/a"))[0] == 200
