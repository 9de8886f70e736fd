"""Scenarios by chance: two clients, two namespaces, a few kinds and names, and watches that stay open.

Guarantees
- A sequence follows from its seed alone: the same seed and number give the same steps.
- Every frame of every watch is compared: from time to time an object that all of them see is marked, and the frames up
  to the mark are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random  # noqa: TID251 - seeded, and the seed is told
from typing import Any

from conformance.bodies import CM, DEPLOYMENT, POD, Tree, configmap, container, deployment, merged, pod
from conformance.scenario import (
    Call,
    FramesUntil,
    OpenWatch,
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
_MARKER = "zz-marker"
_KINDS: dict[str, tuple[str, Callable[[str], Tree]]] = {
    "cm": (CM, configmap),
    "deploy": (DEPLOYMENT, deployment),
    "pod": (POD, pod),
}


def _marking(mark: str) -> Tree:
    return {"metadata": {"annotations": {"mark": mark}}}


class _Sequence:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.replicas = 10
        self.kinds = chance.sample(sorted(_KINDS), 2)
        self.steps: list[Step] = []
        self.watches: list[tuple[str, str, str]] = []
        self.marks = 0
        self.opened = 0

    # -- what a step is about

    def pick(self) -> tuple[str, str, str, str]:
        """A kind, a namespace, a name, and what a client remembers of that object."""
        chance = self.chance
        kind, place, name = chance.choice(self.kinds), chance.choice(("ns", "ns", "ns2")), chance.choice(_NAMES)
        return kind, place, name, f"{chance.choice('xy')}_{kind}_{place}_{name}"

    @staticmethod
    def path(kind: str, place: str, name: str = "") -> str:
        path = _KINDS[kind][0].replace("{ns}", f"{{{place}}}")
        return f"{path}/{name}" if name else path

    def body(self, kind: str, name: str, *, metadata: Tree | None = None) -> Tree:
        """A body: good in most cases."""
        chance = self.chance
        labels = {"own": "yes", "app": chance.choice("xyz")}
        more: Tree = {"metadata": {"labels": labels, **(metadata or {})}}
        if chance.random() < 0.2:
            more["metadata"]["finalizers"] = chance.sample(
                ["example.com/a", "example.com/b", "foregroundDeletion"], chance.choice((1, 1, 2))
            )
        if chance.random() < 0.15:
            more["metadata"]["annotations"] = {"note": chance.choice(("one", "two"))}
        if kind == "cm":
            more["data"] = {key: str(chance.randrange(3)) for key in chance.sample("klm", chance.randrange(3))}
            if chance.random() < 0.05:
                more["immutable"] = True
        if kind == "deploy":
            more["spec"] = {"replicas": chance.choice((0, 1, 2, 2, -1)), "paused": chance.random() < 0.3}
        if kind == "pod":
            more["spec"] = {
                "terminationGracePeriodSeconds": chance.choice((0, 30)),
                "containers": [container(image=chance.choice(("a:1", "a:2", "")))],
            }
            if chance.random() < 0.5:
                more["spec"]["nodeName"] = "here"
        return merged(_KINDS[kind][1](name), more)

    def trial(self) -> dict[str, str]:
        options: dict[str, str] = {}
        if self.chance.random() < 0.12:
            options["dryRun"] = "All"
        if self.chance.random() < 0.1:
            options["fieldValidation"] = self.chance.choice(("Strict", "Warn", "Ignore"))
        return options

    # -- steps

    def create(self) -> None:
        kind, place, name, memory = self.pick()
        body = self.body(kind, name)
        if self.chance.random() < 0.05:
            body["colour"] = "red"
        self.steps.append(post(self.path(kind, place), body, as_=memory, **self.trial()))

    def read(self) -> None:
        kind, place, name, memory = self.pick()
        self.steps.append(get(self.path(kind, place, name), as_=memory))

    def replace(self) -> None:
        kind, place, name, memory = self.pick()
        metadata = {"resourceVersion": f"$rv:{memory}"} if self.chance.random() < 0.6 else {}
        if self.chance.random() < 0.15:
            metadata["uid"] = f"$uid:{memory}"
        self.steps.append(
            put(self.path(kind, place, name), self.body(kind, name, metadata=metadata), as_=memory, **self.trial())
        )

    def merge(self) -> None:
        kind, place, name, memory = self.pick()
        change = self.chance.choice(
            [
                {"metadata": {"labels": {"app": self.chance.choice("xyz")}}},
                {"metadata": {"labels": {"more": self.chance.choice(("1", None))}}},
                {"metadata": {"finalizers": self.chance.choice((None, [], ["example.com/a"]))}},
                {"metadata": {"annotations": {"note": self.chance.choice(("one", None))}}},
                {"data": {"k": self.chance.choice(("0", "1", None))}}
                if kind == "cm"
                else {"spec": {"replicas": self.chance.randrange(3)}},
                {},
            ]
        )
        if self.chance.random() < 0.15:
            change = merged(change, {"metadata": {"resourceVersion": f"$rv:{memory}"}})
        form = self.chance.choice(("merge", "merge", "strategic"))
        self.steps.append(patch(self.path(kind, place, name), change, form, as_=memory, **self.trial()))

    def operate(self) -> None:
        kind, place, name, memory = self.pick()
        operation = self.chance.choice(
            [
                {"op": "add", "path": "/metadata/labels/more", "value": self.chance.choice("12")},
                {"op": "remove", "path": "/metadata/labels/more"},
                {"op": "test", "path": "/metadata/labels/app", "value": self.chance.choice("xyz")},
                {"op": "replace", "path": "/metadata/labels/app", "value": self.chance.choice("xyz")},
                {"op": "remove", "path": "/metadata/finalizers/0"},
                {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
            ]
        )
        self.steps.append(patch(self.path(kind, place, name), [operation], "json", as_=memory, **self.trial()))

    def subresource(self) -> None:
        kind, place, name, memory = self.pick()
        one = self.path(kind, place, name)
        if kind == "deploy" and self.chance.random() < 0.5:
            # Never twice the same number: the engine notes a manager of it even then, which is for when apply exists.
            self.replicas += 1
            self.steps.append(patch(f"{one}/scale", {"spec": {"replicas": self.replicas}}, **self.trial()))
            return
        status: Tree = {"phase": self.chance.choice(("Running", "Succeeded", "Pending"))}
        if kind == "deploy":
            status = {"observedGeneration": self.chance.randrange(4), "replicas": self.chance.randrange(3)}
        change = {"status": status, "spec": {"replicas": 9}, "metadata": {"labels": {"more": self.chance.choice("12")}}}
        self.steps.append(patch(f"{one}/status", change, as_=memory, **self.trial()))

    def remove(self) -> None:
        kind, place, name, memory = self.pick()
        options: dict[str, Any] = {}
        if self.chance.random() < 0.3:
            options["propagationPolicy"] = self.chance.choice(("Background", "Foreground", "Orphan"))
        if self.chance.random() < 0.3:
            options["gracePeriodSeconds"] = self.chance.choice((0, 0, 5, 60))
        if self.chance.random() < 0.25:
            options["preconditions"] = {self.chance.choice(("uid", "resourceVersion")): "..."}
            key = next(iter(options["preconditions"]))
            options["preconditions"][key] = f"$uid:{memory}" if key == "uid" else f"$rv:{memory}"
        trial = {key: value for key, value in self.trial().items() if key == "dryRun"}
        self.steps.append(delete(self.path(kind, place, name), options or None, **trial))

    def remove_many(self) -> None:
        kind, place, _, _ = self.pick()
        self.steps.append(delete(self.path(kind, place), labelSelector=f"own=yes,app={self.chance.choice('xyz')}"))

    def survey(self) -> None:
        kind, place, _, memory = self.pick()
        query: dict[str, Any] = {}
        if self.chance.random() < 0.4:
            query["limit"] = self.chance.choice((1, 2))
        if self.chance.random() < 0.4:
            query["labelSelector"] = self.chance.choice(("app=x", "app!=x", "app in (x,y)", "!more"))
        if self.chance.random() < 0.2:
            query["fieldSelector"] = f"metadata.name!={self.chance.choice(_NAMES)}"
        if query.get("limit") and self.chance.random() < 0.5:
            self.steps.append(get(self.path(kind, place), as_="pages", **query))
            query["continue_"] = "$continue:pages"
        elif not query and self.chance.random() < 0.3:
            query |= {"resourceVersion": f"$rv:{memory}", "resourceVersionMatch": "Exact"}
        self.steps.append(get(self.path(kind, place), **query))

    def open(self) -> None:
        if len(self.watches) >= _WATCHES_MAX:
            return
        kind, place, _, memory = self.pick()
        query = self.chance.choice(
            [
                {},
                {"resourceVersion": f"$rv:{memory}"},
                {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"},
            ]
        )
        if self.chance.random() < 0.5:
            query = {**query, "labelSelector": "app=x"}
        self.opened += 1
        name = f"w{self.opened}"
        self.steps.append(watch(name, self.path(kind, place), **query))
        if "sendInitialEvents" in query:
            # how many later changes come before the bookmark is a matter of chance
            self.steps.append(initial(name))
        self.watches.append((name, kind, place))

    def mark(self) -> None:
        """Change what every watch sees, and read all of them up to there."""
        self.marks += 1
        for kind, place in sorted({(kind, place) for _, kind, place in self.watches}):
            self.steps.append(patch(self.path(kind, place, _MARKER), _marking(str(self.marks))))
        for name, _, _ in self.watches:
            self.steps.append(FramesUntil(name, _MARKER, "mark", str(self.marks)))

    def make(self) -> list[Step]:
        """All steps."""
        for kind in self.kinds:
            for place in ("ns", "ns2"):
                body = merged(_KINDS[kind][1](_MARKER), {"metadata": {"labels": {"app": "x"}}})
                self.steps.append(post(self.path(kind, place), body))
        self.open()
        weighed = {
            self.create: 7, self.read: 4, self.replace: 5, self.merge: 6, self.operate: 4, self.subresource: 4, self.remove: 5, self.remove_many: 1,
            self.survey: 4, self.open: 2,
        }  # fmt: skip
        for number in range(LENGTH):
            self.chance.choices(list(weighed), weights=list(weighed.values()))[0]()
            if number % _MARK_EVERY == _MARK_EVERY - 1:
                self.mark()
        return self.steps


def random_scenario(seed: int, number: int) -> Scenario:
    """The sequence of this number from a seed."""
    return Scenario(f"random/seed-{seed}-number-{number}", tuple(_Sequence(Random(f"{seed}/{number}")).make()))


def _without(steps: Sequence[Step], start: int, size: int) -> tuple[Step, ...]:
    """The steps without some of them, and without frames that can no longer come: of watches or up to marks left out."""
    kept = [*steps[:start], *steps[start + size :]]
    opened = {step.watch: step.call.path for step in kept if isinstance(step, OpenWatch)}
    marked = {(step.path, str(step.body)) for step in kept if isinstance(step, Call) and step.path.endswith(_MARKER)}
    made = {
        step.path for step in kept if isinstance(step, Call) and step.method == "POST" and _MARKER in str(step.body)
    }

    def can_come(step: FramesUntil) -> bool:
        path = opened.get(step.watch, "")
        if not step.name:
            return step.watch in opened
        return path in made and (f"{path}/{_MARKER}", str(_marking(step.value))) in marked

    return tuple(step for step in kept if not isinstance(step, FramesUntil) or can_come(step))


async def shrink(
    scenario: Scenario, differs: Callable[[Scenario], Awaitable[bool]], *, seconds: float = 60
) -> Scenario:
    """Leave out steps as long as the rest still differs, and time is left: halves first, then ever smaller pieces."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    steps = scenario.steps
    size = max(1, len(steps) // 2)
    while loop.time() < due:
        start, found = 0, False
        while start < len(steps) and loop.time() < due:
            fewer = _without(steps, start, size)
            if fewer and await differs(Scenario(f"{scenario.name}, shrunk", fewer)):
                steps, found = fewer, True
            else:
                start += size
        if size == 1 and not found:
            break
        size = max(1, size // 2)
    return Scenario(f"{scenario.name}, shrunk", steps)
