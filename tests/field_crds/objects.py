"""Objects of a kind, from its schema. Deterministic: the same seed makes the same objects.

They are valid as far as a schema says what that means; its rules in CEL are not read, so that some are refused by those.
"""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from field_crds.texts import text_for

Tree = dict[str, Any]
#: How many values an object has, at most about.
_MOST_VALUES = 300


class Maker:
    """Makes objects for one version of a kind."""

    def __init__(self, schema: Tree, seed: str) -> None:
        self._schema = schema
        self.chance = Random(seed)

    def minimal(self) -> Tree:
        """What is required, and nothing else."""
        return self._body(0)

    def rich(self) -> Tree:
        """Much of what there can be."""
        return self._body(_MOST_VALUES)

    def status(self, *, rich: bool = True) -> Any:
        """A status; None if there is none."""
        schema = self._schema.get("properties", {}).get("status")
        return None if schema is None else self.value(schema, 60 if rich else 0)

    def _body(self, room: int) -> Tree:
        body: Tree = {}
        for name, schema in sorted(self._schema.get("properties", {}).items()):
            own = name in {"apiVersion", "kind", "metadata", "status"}
            if name in self._schema.get("required", ()) or (not own and (room or name == "spec")):
                body[name] = self.value(schema, room)
        return {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}

    def value(self, schema: Tree, room: int) -> Any:  # noqa: PLR0911 - one case each
        """A value that fits a schema, with room for so many more than it must have."""
        chance = self.chance
        if "enum" in schema:
            return chance.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._int_or_string(schema)
        match schema.get("type"):
            case "object":
                return self._object(schema, room)
            case "array":
                return self._array(schema, room)
            case "string":
                return text_for(schema, chance)
            case "integer":
                return self._integer(schema)
            case "number":
                return self._integer(schema) + chance.choice([0, 0.5])
            case "boolean":
                return chance.random() < 0.5
            case _:
                # anything goes
                return {"any": ["thing", 1, True]}

    def _int_or_string(self, schema: Tree) -> Any:
        if "pattern" in schema:
            return self.chance.choice([5, text_for(schema, self.chance)])
        return self.chance.choice([5, "50%"])

    def _integer(self, schema: Tree) -> int:
        least = int(schema.get("minimum", 1)) + bool(schema.get("exclusiveMinimum"))
        most = int(schema.get("maximum", least + 9)) - bool(schema.get("exclusiveMaximum"))
        number = self.chance.randint(least, max(least, min(most, least + 9)))
        multiple = int(schema.get("multipleOf", 1))
        return number - number % multiple if multiple else number

    def _array(self, schema: Tree, room: int) -> list[Any]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", 2)
        wanted = max(least, min(most, self.chance.choice([1, 1, 2]) if room else 0))
        items: list[Any] = []
        known: set[str] = set()
        keys = schema.get("x-kubernetes-list-map-keys")
        unique = schema.get("x-kubernetes-list-type") in {"set", "map"} or schema.get("uniqueItems")
        for _ in range(wanted * 3):
            if len(items) == wanted:
                break
            item = self.value(schema["items"], room // (wanted + 1))
            by = repr([item.get(key) for key in keys]) if keys and isinstance(item, dict) else repr(item)
            if not unique or by not in known:
                known.add(by)
                items.append(item)
        return items

    def _object(self, schema: Tree, room: int) -> Tree:
        if schema.get("x-kubernetes-embedded-resource"):
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}, "data": {"a": "b"}}
        properties: Tree = schema.get("properties", {})
        wanted, unwanted = self._choice(schema)
        others = sorted(set(properties) - wanted - unwanted)
        wished = self.chance.sample(others, min(len(others), (room + 1) // 2)) if room > 1 else []
        names = sorted({*(wanted & set(properties)), *wished})
        tree: Tree = {name: self.value(properties[name], room // (len(names) + 1)) for name in names}
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for index in range(max(schema.get("minProperties", 0), 1 if room else 0)):
                tree[f"key{index}"] = self.value(more, room // 2)
        elif not properties and room and schema.get("x-kubernetes-preserve-unknown-fields"):
            tree["anything"] = {"goes": [1, "two"]}
        return self._enough(schema, tree)

    def _enough(self, schema: Tree, tree: Tree) -> Tree:
        """As few or many properties as are allowed."""
        for name, each in sorted(schema.get("properties", {}).items()):
            if len(tree) >= schema.get("minProperties", 0):
                break
            if name not in tree:
                tree[name] = self.value(each, 0)
        for name in sorted(set(tree) - set(schema.get("required", ()))):
            if len(tree) > schema.get("maxProperties", len(tree)):
                del tree[name]
        return tree

    def _choice(self, schema: Tree) -> tuple[set[str], set[str]]:
        """Properties that must be there, and that must not: one of each set of branches is taken."""
        wanted, unwanted = set(schema.get("required", ())), set[str]()
        for word in ("oneOf", "anyOf"):
            branches = [set(each.get("required", ())) for each in schema.get(word, ())]
            if any(branches):
                taken = self.chance.choice([each for each in branches if each])
                wanted |= taken
                if word == "oneOf":
                    unwanted |= set().union(*branches) - taken
        return wanted, unwanted - set(schema.get("required", ()))
