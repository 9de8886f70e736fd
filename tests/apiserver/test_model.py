"""Lists and watches against a model: a dict, and the history of its changes."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings, strategies as st

from samples.embedded import Raw, told
from steersman.apiserver import ApiServer

SPACES = ("default", "kube-public")
NAMES = ("a", "b", "c")
LABELS = ("x", "y")

_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(SPACES), st.sampled_from(NAMES), st.sampled_from(LABELS)),
        st.tuples(st.just("delete"), st.sampled_from(SPACES), st.sampled_from(NAMES), st.just("")),
        st.tuples(st.just("watch"), st.sampled_from(("", *SPACES)), st.sampled_from(("", *LABELS)), st.just("")),
        st.tuples(st.just("list"), st.sampled_from(("", *SPACES)), st.sampled_from(("", *LABELS)), st.just("")),
    ),
    max_size=25,
)


@dataclass
class Model:
    """What is there, and what happened: namespace, name, label before and after, and the version."""

    objects: dict[tuple[str, str], str] = field(default_factory=dict)
    history: list[tuple[str, str, str | None, str | None, int]] = field(default_factory=list)

    def change(self, space, name, label, version):
        before = self.objects.get((space, name))
        if label is None:
            del self.objects[space, name]
        else:
            self.objects[space, name] = label
        self.history.append((space, name, before, label, version))

    def listed(self, space, label):
        return sorted(key for key, value in self.objects.items() if space in {"", key[0]} and label in {"", value})

    def events(self, space, label, after):
        """What a watch tells that began after a version."""
        found = []
        for where, name, before, now, version in self.history:
            if version <= after or space not in {"", where}:
                continue
            was, is_ = (value is not None and label in {"", value} for value in (before, now))
            if was or is_:
                found.append(("MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED", name, version))
        return found


def _path(space):
    return f"/api/v1/namespaces/{space}/configmaps" if space else "/api/v1/configmaps"


def _selector(label):
    return f"labelSelector=l={label}" if label else ""


async def _play(steps):
    model, watches = Model(), []
    async with ApiServer(kinds=["v1"]) as server:
        raw = Raw(server.handler)
        for kind, space, what, label in steps:
            if kind == "put":
                await _put(raw, model, space, what, label)
            elif kind == "delete":
                await _delete(raw, model, space, what)
            elif kind == "watch":
                version = await server.storage.revision()
                query = f"watch=1&resourceVersion={version}&{_selector(what)}"
                watches.append((space, what, version, await raw.watch(f"{_path(space)}?{query}")))
            else:
                found = await raw.get(f"{_path(space)}?{_selector(what)}")
                keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found.body["items"]]
                assert keys == model.listed(space, what)
        for space, label, version, watch in watches:
            expected = model.events(space, label, version)
            assert [told(frame) for frame in await watch.take(len(expected))] == expected
            await watch.close()
        for space, name, _, _, version in model.history:
            past = [entry for entry in model.history if entry[4] <= version]
            await _check_past(raw, past, version)
            del space, name


async def _put(raw, model, space, name, label):
    body = {"metadata": {"name": name, "labels": {"l": label}}}
    if (space, name) in model.objects:
        answered = await raw.put(f"{_path(space)}/{name}", body)
        if model.objects[space, name] == label:
            # nothing changed, and nothing happened
            assert answered.version == max(v for s, n, _, _, v in model.history if (s, n) == (space, name))
            return
    else:
        answered = await raw.post(_path(space), body)
    model.change(space, name, label, answered.version)


async def _delete(raw, model, space, name):
    answered = await raw.delete(f"{_path(space)}/{name}")
    if (space, name) not in model.objects:
        assert answered.code == 404
        return
    model.change(space, name, None, (await raw.get(_path(space))).version)


async def _check_past(raw, past, version):
    objects = {}
    for space, name, _, label, _ in past:
        objects[space, name] = label
    found = await raw.get(f"/api/v1/configmaps?resourceVersion={version}&resourceVersionMatch=Exact")
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found.body["items"]]
    assert keys == sorted(key for key, label in objects.items() if label is not None)


@settings(max_examples=60, deadline=None)
@given(_steps)
def test_lists_and_watches_are_those_of_a_dict_with_a_history(steps):
    asyncio.run(_play(steps))
