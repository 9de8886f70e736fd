"""Scenarios by chance: a few clients, two namespaces, three kinds, two names, and watches that stay open.

Guarantees
- A sequence follows from its seed alone: the same seed and number give the same steps.
- Every frame of every watch is compared: from time to time an object that all of them see is marked, and the frames up
  to the mark are read.
- Steps ask nothing that one server may answer in two ways: no list is cut where others have objects, none is taken from
  a cache that may lag, and generated names have prefixes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from conformance.bodies import Tree, merged
from conformance.chances import Usual, maybe, pick, placed
from conformance.random_applies import MANAGERS, random_apply
from conformance.random_kinds import KINDS, RandomKind
from conformance.random_users import USERS, let_in
from conformance.scenario import (
    Call,
    Close,
    FramesUntil,
    Scenario,
    Step,
    delete,
    get,
    initial,
    patch,
    post,
    put,
    watch,
)

#: Steps of one sequence, marks and frames aside.
LENGTH = 100
_MARK_EVERY = 12
_WATCHES_MAX = 4
_NAMES = ("a", "b")
_MARKER, _CLUSTER_MARKER = "zz-marker", "{u3}"
_CLUSTER_NAMES = ("{free}", "{free2}")
#: Selects what one play made, where others have objects too.
_MINE = "mine={u}"

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_FIXED_UID = "11111111-2222-3333-4444-555555555555"


def _marking(mark: str) -> Tree:
    return {"metadata": {"annotations": {"mark": mark}}}


def _collection(kind: RandomKind, place: str) -> str:
    return kind.path.replace("{ns}", f"{{{place}}}")


class RequestSequence:
    """The steps of one sequence, made one after the other."""

    def __init__(self, chance: Random, kinds: Sequence[str], length: int) -> None:
        self.chance = chance
        self.length = length
        self.kinds = {name: KINDS[name] for name in chance.sample(sorted(kinds), min(3, len(kinds)))}
        if "service" in self.kinds:
            # The engine tells of Services by Events of its own.
            self.kinds.pop("event", None)
            self.kinds.pop("newevent", None)
        self.places = ["ns", "ns", "ns", "ns2"]
        self.has_users = chance.random() < 0.3
        self.steps: list[Step] = []
        #: Open watches: the kind that each of them shows, and the object by which it is marked.
        self.watches: dict[str, tuple[str, str]] = {}
        self.replicas = 10
        self.marks = self.opened = self.generated = self.replaced = 0
        self.generated_names: list[tuple[str, str, str]] = []

    # -- what a step is about

    def flip(self, share: float) -> bool:
        return self.chance.random() < share

    def pick(self, *, scaled: bool = False) -> tuple[RandomKind, str, str, str]:
        """A kind, its collection, a name, and what a client remembers of that object."""
        chance = self.chance
        names = [name for name, kind in self.kinds.items() if kind.scales or not scaled]
        kind_name = chance.choice(names)
        kind, place, name = self.kinds[kind_name], chance.choice(self.places), chance.choice(_NAMES)
        if kind.cluster:
            place, name = "", chance.choice(_CLUSTER_NAMES)
        known = [entry for entry in self.generated_names if entry[0] == kind_name]
        if known and self.flip(0.1):
            _, place, memory = chance.choice(known)
            return kind, _collection(kind, place), f"$name:{memory}", memory
        word = name.strip("{}")
        return kind, _collection(kind, place), name, f"{chance.choice('xy')}_{kind_name}_{place}_{word}"

    def body(self, kind: RandomKind, path: str, name: str, *, metadata: Tree | None = None) -> Tree:
        """A body: good in most cases."""
        place = next((place for place in self.places if f"/{{{place}}}/" in path), "ns")
        chance = self.chance
        labels = {"own": "yes", "app": pick(chance, "xyz", ["-", "x y"])}
        if kind.cluster:
            labels["mine"] = "{u}"
        more: Tree = {"metadata": {"labels": labels, **(metadata or {})}}
        made = placed(kind.make(chance, name), place)
        if self.flip(0.15):
            own = made["metadata"].get("finalizers", [])
            finalizers = pick(
                chance,
                [["example.com/a"], ["example.com/b"], ["foregroundDeletion"], ["example.com/a", "orphan"]],
                [["odd"], ["orphan", "foregroundDeletion"], ["a b/c"]],
            )
            more["metadata"]["finalizers"] = [*own, *finalizers]
        if self.flip(0.15):
            more["metadata"]["annotations"] = {"note": chance.choice(("one", "two"))}
        if self.flip(0.08):
            more["metadata"]["ownerReferences"] = self.owners()
        return merged(made, more)

    def owners(self) -> list[Tree]:
        known = f"$uid:{self.pick()[3]}"
        one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": self.chance.choice((known, _FIXED_UID))}
        two = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b", "uid": _FIXED_UID, "controller": True}
        return pick(
            self.chance,
            [[one], [one, two], [{**one, "blockOwnerDeletion": True}], [{**two, "controller": False}]],
            [[one, one], [two, {**two, "name": "c"}], [{**one, "uid": ""}], [{**one, "apiVersion": "a/b/c"}], []],
        )

    def trial(self) -> dict[str, Any]:
        """Options that every write may have."""
        options: dict[str, Any] = {}
        if self.flip(0.12):
            options["dryRun"] = pick(self.chance, ["All"], ["Some"])
        if self.flip(0.1):
            options["fieldValidation"] = pick(self.chance, ["Strict", "Warn", "Ignore"], ["Loud"])
        if self.flip(0.3):
            options["fieldManager"] = self.chance.choice(MANAGERS)
        if self.flip(0.05):
            options["accept"] = self.chance.choice((TABLE, PARTIAL, "application/yaml"))
        return options

    def add(self, step: Call) -> None:
        """Add a request, some of them as another user."""
        if self.has_users and self.flip(0.3):
            user = ("Impersonate-User", f"{self.chance.choice(USERS)}-{{u}}")
            step = replace(step, headers=(*step.headers, user))
        self.steps.append(step)

    def sent(self, kind: RandomKind, body: Tree) -> tuple[Any, dict[str, str]]:
        """A body as it is sent: as JSON, now and then as YAML or spoilt."""
        if not self.flip(0.04) or kind is KINDS["site"]:
            return body, {}
        return self.chance.choice(
            [
                (body, {"content": "application/yaml"}),
                (body, {"content": "text/plain"}),
                (b'{"kind": ', {}),
                (b"[]", {}),
                (b"", {}),
                ({**body, "kind": "Other"}, {}),
                ({**body, "apiVersion": "v7"}, {}),
                ({key: value for key, value in body.items() if key not in ("kind", "apiVersion")}, {}),
            ]
        )

    # -- steps: writes

    def create(self) -> None:
        kind, path, name, memory = self.pick()
        body = self.body(kind, path, name)
        if self.flip(0.06) and not kind.cluster:
            self.generated += 1
            memory = f"g{self.generated}"
            body["metadata"] |= {"name": None, "generateName": f"g{self.generated}-"}
            del body["metadata"]["name"]
            kind_name = next(each for each, found in self.kinds.items() if found is kind)
            place = next(place for place in self.places if _collection(kind, place) == path)
            self.generated_names.append((kind_name, place, memory))
        if self.flip(0.05):
            body = merged(body, self.chance.choice(({"color": "red"}, {"metadata": {"color": "red"}})))
        if self.flip(0.03):
            change = self.chance.choice(({"namespace": "other"}, {"uid": _FIXED_UID}, {"resourceVersion": "5"}))
            body["metadata"] |= change
        sent, options = self.sent(kind, body)
        self.add(post(path, sent, as_=memory, **options, **self.trial()))

    def replace(self) -> None:
        kind, path, name, memory = self.pick()
        metadata: Tree = {}
        if self.flip(0.6):
            metadata["resourceVersion"] = pick(self.chance, [f"$rv:{memory}"], ["x", "0", "99999999999"])
        if self.flip(0.15):
            metadata["uid"] = f"$uid:{memory}"
        if self.flip(0.02):
            metadata["namespace"] = "other"
        body = self.body(kind, path, "other" if self.flip(0.02) else name, metadata=metadata)
        if kind is KINDS["daemonset"]:
            # Without its own annotation, one that is otherwise the same changes a time in managedFields, a second later.
            self.replaced += 1
            body = merged(body, {"metadata": {"annotations": {"put": str(self.replaced)}}})
        sent, options = self.sent(kind, body)
        self.add(put(f"{path}/{name}", sent, as_=memory, **options, **self.trial()))

    def edit(self) -> None:
        """A whole object as it was read: nothing changes, unless another write was faster."""
        _, path, name, memory = self.pick()
        if self.flip(0.7):
            self.steps.append(get(f"{path}/{name}", as_=memory))
        self.add(put(f"{path}/{name}", f"${{{memory}..}}", as_=memory, **self.trial()))

    def merge(self) -> None:
        kind, path, name, memory = self.pick()
        chance = self.chance
        change = chance.choice(
            [
                {"metadata": {"labels": {"app": pick(chance, "xyz", ["-"])}}},
                {"metadata": {"labels": {"more": chance.choice(("1", None))}}},
                {"metadata": {"finalizers": pick(chance, [None, [], ["example.com/a"]], [["odd"], "x"])}},
                {"metadata": {"annotations": {"note": pick(chance, ["one", None], [5])}}},
                {"metadata": {"ownerReferences": self.owners()}},
                kind.change(chance),
                kind.change(chance),
                kind.change(chance),
                {},
            ]
        )
        if self.flip(0.15):
            known = {"resourceVersion": f"$rv:{memory}"} if self.flip(0.8) else {"uid": f"$uid:{memory}"}
            change = merged(change, {"metadata": known})
        form = self.chance.choice(("merge", "merge", "strategic"))
        if kind.strategic is not None and form == "strategic" and self.flip(0.5):
            change = kind.strategic(chance)
        sent: Any = change
        if self.flip(0.03) and kind is not KINDS["site"]:
            sent = chance.choice((b"{", [], "text", b"null", {"metadata": None}, {"kind": "Other"}, {"apiVersion": 5}))
        self.add(patch(f"{path}/{name}", sent, form, as_=memory, **self.trial()))

    def apply(self) -> None:
        kind, path, name, memory = self.pick()
        self.add(
            random_apply(self.chance, kind, f"{path}/{name}", self.body(kind, path, name), as_=memory, **self.trial())
        )

    def operate(self) -> None:
        kind, path, name, memory = self.pick()
        chance = self.chance
        operations: Any = chance.choice(
            [
                [{"op": "add", "path": "/metadata/labels/more", "value": chance.choice("12")}],
                [{"op": "remove", "path": "/metadata/labels/more"}],
                [{"op": "test", "path": "/metadata/labels/app", "value": chance.choice("xyz")}],
                [{"op": "replace", "path": "/metadata/labels/app", "value": chance.choice("xyz")}],
                [{"op": "remove", "path": "/metadata/finalizers/0"}],
                [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"}],
                kind.operate(chance),
                kind.operate(chance),
                kind.operate(chance),
            ]
        )
        if self.flip(0.2):
            operations = [*operations, *kind.operate(chance)]
        if self.flip(0.03):
            operations = chance.choice(([], {}, [{"op": "jump", "path": "/x"}], [{"op": "add"}], b"[", [1]))
        self.add(patch(f"{path}/{name}", operations, "json", as_=memory, **self.trial()))

    def status(self) -> None:
        kind, path, name, memory = self.pick()
        chance = self.chance
        status = kind.status(chance) if kind.status is not None else {"phase": "x"}
        one = f"{path}/{name}/status"
        if self.flip(0.15):
            self.add(get(one, as_=memory))
        elif self.flip(0.3) and kind is not KINDS["service"]:
            # a Service that is not there would be made, without an address
            known = {key: f"${{{memory}.{key}}}" for key in ("metadata", "spec")}
            self.add(put(one, {**kind.make(Usual(), name), **known, "status": status}, as_=memory, **self.trial()))
        else:
            change: Tree = {"status": status}
            if self.flip(0.3):
                change = merged(change, {"metadata": {"labels": {"more": chance.choice("12")}}})
            self.add(patch(one, change, chance.choice(("merge", "strategic")), as_=memory, **self.trial()))

    def scale(self) -> None:
        if not any(kind.scales for kind in self.kinds.values()):
            return
        _, path, name, memory = self.pick(scaled=True)
        self.replicas += self.chance.choice((0, 1))
        asked = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": name, **maybe(self.chance, 0.3, {"resourceVersion": f"$rv:{memory}"})},
            "spec": {"replicas": pick(self.chance, [self.replicas], [-1])},
        }
        one = f"{path}/{name}/scale"
        choice = self.chance.randrange(4)
        if choice == 0:
            self.add(get(one))
        elif choice == 1:
            self.add(put(one, asked, **self.trial()))
        elif choice == 2:
            self.add(patch(one, {"spec": {"replicas": pick(self.chance, [self.replicas], [-1, "x"])}}, **self.trial()))
        else:
            operations = [{"op": "replace", "path": "/spec/replicas", "value": self.replicas}]
            self.add(patch(one, operations, "json", **self.trial()))

    def own_subresource(self) -> None:
        """What only pods and namespaces have."""
        kind, path, name, _ = self.pick()
        one = f"{path}/{name}"
        if kind.cluster:
            spec = {"finalizers": self.chance.choice(([], [], ["kubernetes"]))}
            body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
            self.add(put(f"{one}/finalize", body))
        elif path.endswith("/pods") and self.flip(0.5):
            body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": name}, "target": {"name": "here"}}
            self.add(post(f"{one}/binding", body, **maybe(self.chance, 0.1, {"dryRun": "All"})))
        elif path.endswith("/pods"):
            body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
            body |= maybe(self.chance, 0.4, {"deleteOptions": {"gracePeriodSeconds": self.chance.choice((0, 5))}})
            self.add(post(f"{one}/eviction", body, **maybe(self.chance, 0.1, {"dryRun": "All"})))

    # -- steps: deletions

    def deletion(self, memory: str) -> dict[str, Any]:
        chance = self.chance
        options: dict[str, Any] = {}
        if self.flip(0.3):
            options["propagationPolicy"] = pick(chance, ["Background", "Foreground", "Orphan"], ["Other"])
        if self.flip(0.3):
            options["gracePeriodSeconds"] = pick(chance, [0, 0, 5, 60], [-1, 1])
        if self.flip(0.25):
            known = {"uid": f"$uid:{memory}"} if self.flip(0.5) else {"resourceVersion": f"$rv:{memory}"}
            # where a policy changes the finalizers first, the engine loses the version that it should look at
            options = {key: options[key] for key in options if key != "propagationPolicy"}
            options["preconditions"] = known
        if self.flip(0.05):
            options["orphanDependents"] = chance.choice((True, False))
        if self.flip(0.05):
            # what a policy would change of finalizers is answered with an object that holds nothing
            options = {key: options[key] for key in options if key not in ("propagationPolicy", "orphanDependents")}
            options["dryRun"] = ["All"]
        return options

    def remove(self) -> None:
        kind, path, name, memory = self.pick()
        options = self.deletion(memory)
        if kind.cluster:
            # in which order the engine writes the finalizers of a Namespace is a matter of chance
            options = {key: options[key] for key in options if key not in ("propagationPolicy", "orphanDependents")}
        query = maybe(self.chance, 0.1, {"dryRun": "All"})
        if query:
            options = {key: options[key] for key in options if key not in ("propagationPolicy", "orphanDependents")}
        if self.flip(0.2):
            # told in the query, where no body is
            query |= {key: options[key] for key in ("propagationPolicy", "gracePeriodSeconds") if key in options}
            options = {}
        if self.flip(0.05):
            query["accept"] = self.chance.choice((TABLE, PARTIAL))
        self.add(delete(f"{path}/{name}", options or None, **query))

    def remove_many(self) -> None:
        kind, path, _, memory = self.pick()
        selector = f"own=yes,app={self.chance.choice('xyz')}" if self.flip(0.8) else "own=yes"
        if kind.cluster:
            return
        options = {key: value for key, value in self.deletion(memory).items() if key != "preconditions"}
        self.add(delete(path, options or None, labelSelector=selector))

    # -- steps: reads

    def read(self) -> None:
        _, path, name, memory = self.pick()
        accept = maybe(self.chance, 0.2, {"accept": self.chance.choice((TABLE, PARTIAL, "application/yaml"))})
        if "accept" not in accept:
            accept["as_"] = memory
        if self.flip(0.1):
            # of what was just read: an older one may be answered with any state since
            self.steps.append(get(f"{path}/{name}", as_="now"))
            accept["resourceVersion"] = pick(self.chance, ["$rv:now"], ["x"])
        self.add(get(f"{path}/{name}", **accept))

    def selectors(self, kind: RandomKind) -> dict[str, str]:
        chance = self.chance
        query: dict[str, str] = {}
        if self.flip(0.4):
            choices = ("app=x", "app!=x", "app in (x,y)", "app notin (x)", "!more", "more", "app=x,more=1")
            query["labelSelector"] = pick(chance, choices, ["app in x", "=", "app==x,,"])
        if self.flip(0.25):
            usual = [f"metadata.name!={chance.choice(_NAMES)}", f"metadata.name={chance.choice(_NAMES)}", *kind.fields]
            query["fieldSelector"] = pick(chance, usual, ["spec.none=x", "metadata.name", "=x"])
        if kind.cluster:
            query["labelSelector"] = ",".join(filter(None, (_MINE, query.get("labelSelector", ""))))
        return query

    def survey(self) -> None:
        kind, path, _, memory = self.pick()
        query: dict[str, Any] = self.selectors(kind)
        if self.flip(0.25):
            query["accept"] = self.chance.choice((TABLE, PARTIAL_LIST, "application/yaml"))
        # Of the Pods of a node the engine has an index, which knows where they end.
        if self.flip(0.4) and not kind.cluster and "nodeName=" not in query.get("fieldSelector", ""):
            query["limit"] = self.chance.choice((1, 1, 2, 3))
        if query.get("limit") and "accept" not in query and self.flip(0.6):
            self.add(get(path, as_="pages", **query))
            for _ in range(self.chance.choice((1, 1, 2))):
                self.add(get(path, as_="pages", **query, continue_="$continue:pages"))
            return
        if self.flip(0.2):
            query |= {"resourceVersion": f"$rv:{memory}", "resourceVersionMatch": pick(self.chance, ["Exact"], ["x"])}
        elif self.flip(0.15) and not kind.cluster:
            self.steps.append(get(path, as_="all"))
            query |= {"resourceVersion": "$rv:all", **maybe(self.chance, 0.7, {"resourceVersionMatch": "NotOlderThan"})}
        self.add(get(path, **query))

    # -- watches

    def open(self) -> None:
        chance = self.chance
        if len(self.watches) >= _WATCHES_MAX:
            name = chance.choice(sorted(self.watches))
            del self.watches[name]
            self.steps.append(Close(name))
        kind_name = chance.choice(sorted(self.kinds))
        kind, place = self.kinds[kind_name], chance.choice(("ns", "ns", "ns2"))
        path = _collection(kind, place)
        memory = f"{chance.choice('xy')}_{kind_name}_{place}_{chance.choice(_NAMES)}"
        query: dict[str, Any] = chance.choice(
            [
                {},
                {"resourceVersion": f"$rv:{memory}"},
                {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"},
            ]
        )
        query |= maybe(chance, 0.2, {"allowWatchBookmarks": "true"})
        if self.flip(0.5):
            query["labelSelector"] = chance.choice(("app=x", "app", "app in (x,y)", "app!=y"))
        elif self.flip(0.2):
            query["fieldSelector"] = f"metadata.name!={chance.choice(_NAMES)}"
        if kind.cluster:
            query["labelSelector"] = ",".join(filter(None, (_MINE, query.get("labelSelector", ""))))
            query.pop("fieldSelector", None)
        if self.flip(0.25):
            query["accept"] = chance.choice((TABLE, PARTIAL))
        self.opened += 1
        name = f"w{self.opened}"
        self.steps.append(watch(name, path, **query))
        if "sendInitialEvents" in query:
            # how many later changes come before the bookmark is a matter of chance
            self.steps.append(initial(name))
        self.watches[name] = (kind_name, f"{path}/{_CLUSTER_MARKER if kind.cluster else _MARKER}")

    def mark(self) -> None:
        """Change what every watch sees, and read all of them up to there."""
        self.marks += 1
        for by in sorted({by for _, by in self.watches.values()}):
            self.steps.append(patch(by, _marking(str(self.marks))))
        for name, (_, by) in self.watches.items():
            self.steps.append(FramesUntil(name, by.rsplit("/", 1)[1], "mark", str(self.marks), by))

    # -- all of them

    def prepare(self) -> None:
        """Make what is marked, and let users in."""
        for kind in self.kinds.values():
            for place in ("ns",) if kind.cluster else ("ns", "ns2"):
                name = _CLUSTER_MARKER if kind.cluster else _MARKER
                labels = {"app": "x", **({"mine": "{u}"} if kind.cluster else {})}
                body = merged(kind.make(Usual(), name), {"metadata": {"labels": labels}})
                self.steps.append(post(_collection(kind, place), placed(body, place)))
        for _ in range(6):
            self.create()
        if self.has_users:
            self.steps += let_in(list(self.kinds.values()))

    def make(self) -> list[Step]:
        """All steps."""
        self.prepare()
        self.open()
        weighed = {
            self.create: 10, self.read: 4, self.replace: 4, self.edit: 3, self.merge: 6, self.operate: 4, self.status: 4,
            self.scale: 2, self.apply: 8, self.own_subresource: 1, self.remove: 4, self.remove_many: 1, self.survey: 4, self.open: 2,
        }  # fmt: skip
        for number in range(self.length):
            self.chance.choices(list(weighed), weights=list(weighed.values()))[0]()
            if number % _MARK_EVERY == _MARK_EVERY - 1:
                self.mark()
        self.mark()
        return self.steps


def random_scenario(seed: int, number: int, *, kinds: Sequence[str] = tuple(KINDS), length: int = LENGTH) -> Scenario:
    """The sequence of this number from a seed, of some of the kinds."""
    sequence = RequestSequence(Random(f"{seed}/{number}"), kinds, length)
    return Scenario(f"random/seed-{seed}-number-{number}", tuple(sequence.make()))
