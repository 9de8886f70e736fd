"""Objects to apply, at random, from so few values that managers meet on the same fields."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any


class Intents:
    """Makes intents of a few kinds."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def of(self, kind: str) -> dict[str, Any]:
        makers = {
            "ConfigMap": self.config_map,
            "Service": self.service,
            "Deployment": self.deployment,
            "Sample": self.sample,
        }
        return makers[kind]()

    def object(self, kind: str, name: str, version: str = "", subresource: str = "") -> dict[str, Any]:
        """All of an object but its type, as it may be sent to one of its endpoints."""
        if kind != "Sample":
            return {"metadata": self.metadata(name)} | self.of(kind)
        if subresource:
            return {"metadata": {"name": name}, "status": self.status()}
        whole: dict[str, Any] = {"metadata": self.metadata(name)} | self.sample(version)
        return whole | self.fields({"status": self.status}, 0.1)

    def some(self, values: list[Any], most: int = 3) -> list[Any]:
        return self.random.sample(values, self.random.randint(0, min(most, len(values))))

    def fields(self, makers: dict[str, Any], share: float = 0.4) -> dict[str, Any]:
        return {name: make() for name, make in makers.items() if self.random.random() < share}

    def text(self) -> str:
        return self.random.choice(["a", "b", "c"])

    def number(self) -> int:
        return self.random.randint(1, 3)

    def texts(self) -> dict[str, str]:
        return {name: self.text() for name in self.some(["x", "y", "z"])}

    def metadata(self, name: str) -> dict[str, Any]:
        more = self.fields(
            {
                "labels": self.texts,
                "annotations": self.texts,
                "finalizers": lambda: self.some(["example.com/a", "example.com/b"]),
            },
            0.25,
        )
        return {"name": name, **more}

    def config_map(self) -> dict[str, Any]:
        return self.fields({"data": self.texts, "binaryData": lambda: dict.fromkeys(self.some(["m", "n"]), "YQ==")})

    def service(self) -> dict[str, Any]:
        def port() -> list[dict[str, Any]]:
            chosen = self.some([("p80", 80, "TCP"), ("u80", 80, "UDP"), ("p81", 81, "TCP")])
            return [
                {"name": name, "port": number, **({"protocol": kind} if kind == "UDP" or self.number() == 1 else {})}
                | self.fields({"targetPort": lambda: self.random.choice([8080, "http"])})
                for name, number, kind in chosen
            ] or [{"name": "p80", "port": 80}]

        spec = self.fields({"selector": self.texts, "sessionAffinity": lambda: "None"}) | {"ports": port()}
        return {"spec": spec}

    def deployment(self) -> dict[str, Any]:
        def environment() -> list[dict[str, Any]]:
            # the same one twice is what a server takes from an update, and not from an apply
            names = self.some(["E", "E", "F", "G"] if self.random.random() < 0.15 else ["E", "F", "G"])
            return [{"name": name, "value": self.text()} for name in names]

        def container(name: str) -> dict[str, Any]:
            return {"name": name, "image": self.text()} | self.fields(
                {
                    "env": environment,
                    "args": lambda: self.some(["x", "y"]),
                    "ports": lambda: [{"containerPort": 80 + each} for each in self.some([0, 1])],
                    "resources": lambda: {"limits": {"cpu": self.random.choice(["1", "1000m", "2"])}},
                    "securityContext": dict,
                },
                0.3,
            )

        names = self.some(["one", "two", "three"]) or ["one"]
        pod = {"containers": [container(name) for name in names]} | self.fields(
            {
                "nodeSelector": self.texts,
                "volumes": lambda: [{"name": v, "emptyDir": {}} for v in self.some(["v", "w"])],
            }
        )
        spec = self.fields(
            {
                "replicas": self.number,
                "minReadySeconds": self.number,
                "strategy": lambda: {"rollingUpdate": {"maxSurge": self.number()}},
            }
        )
        template = {"metadata": {"labels": {"app": "web"} | self.texts()}, "spec": pod}
        return {"spec": spec | {"selector": {"matchLabels": {"app": "web"}}, "template": template}}

    def status(self) -> dict[str, Any]:
        def conditions() -> list[dict[str, Any]]:
            return [{"type": each} | self.fields({"status": self.text}) for each in self.some(["A", "B", "C"])]

        return self.fields(
            {
                "ready": lambda: self.random.choice([True, False]),
                "replicas": self.number,
                "counts": lambda: {name: self.number() for name in self.some(["x", "y"])},
                "conditions": conditions,
            }
        )

    def sample(self, version: str = "") -> dict[str, Any]:
        def ports() -> list[dict[str, Any]]:
            return [
                {"port": number, **({"protocol": kind} if kind else {})}
                | self.fields({"name": self.text, "nested": lambda: self.fields({"x": self.number})})
                for number, kind in self.some([(1, ""), (1, "UDP"), (2, ""), (3, "TCP")])
            ]

        def anything() -> Any:
            return self.random.choice(
                [
                    self.number(),
                    self.text(),
                    self.some([1, 2]),
                    self.texts(),
                    {"l": {"m": self.number()}},
                    {"n": [{"o": self.text()}], "p": self.random.choice([1, True, 0, False])},
                ]
            )

        def template() -> dict[str, Any]:
            metadata = self.fields({"labels": self.texts, "finalizers": lambda: self.some(["a/b", "c/d"])})
            head = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            return head | self.fields({"spec": anything})

        def pairs() -> list[dict[str, Any]]:
            # in the second version one key must tell them apart
            two = version == "v1" and self.random.random() < 0.1
            chosen = self.some([("a", "x"), ("a", "y") if two else ("b", "y"), ("c", "x")])
            return [{"a": a, "b": b} | self.fields({"c": self.text}) for a, b in chosen]

        makers = {
            "text": self.text,
            "plainList": lambda: [{"a": self.text()} for _ in self.some([1, 2])],
            "atomicList": lambda: self.some(["x", "y"]),
            "set": lambda: self.some(["a", "b", "c", "d"], 4),
            "numbers": lambda: self.some([1, 2, 3]),
            "ports": ports,
            "map": lambda: {
                name: self.fields({"x": self.text, "y": lambda: {"k": self.number()}}) for name in self.some(["k", "l"])
            },
            "atomicMap": self.texts,
            "atomicStruct": lambda: self.fields({"x": self.text}),
            "free": lambda: {name: anything() for name in self.some(["f", "g"])},
            "half": lambda: self.fields({"known": lambda: self.fields({"x": self.text}), "other": anything}),
            "any": anything,
            "amount": lambda: self.random.choice([5, "5"]),
            "nullable": lambda: self.random.choice([None, {}, {"x": "1"}]),
        }
        if not version:
            return {"spec": self.fields(makers, 0.3)}
        makers |= {"template": template, "pairs": pairs, "items": lambda: [anything() for _ in self.some([1, 2])]}
        rare = {"text": self.number} | ({"only1": self.text} if version == "v1" else {})
        return {"spec": self.fields(makers, 0.3) | self.fields(rare, 0.02)}
