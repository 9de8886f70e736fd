"""Names that follow from the data: the same data have the same name, and every name is valid."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from samples.site import SiteSpec, site
from steersman import Unstructured
from steersman.objects import decode, encode, hashed_name

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PARENTS = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?){0,6}", fullmatch=True
)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def canonical(value):
    return json.dumps(without_nulls(value), sort_keys=True)


@given(parent=PARENTS, data=VALUES, other=VALUES, collisions=st.integers(0, 3))
def test_a_name_is_valid_and_follows_from_the_data_alone(parent, data, other, collisions):
    name = hashed_name(parent, data, collisions)
    assert NAME.fullmatch(name)
    assert len(name) <= 63
    assert name == hashed_name(parent, data, collisions)
    assert name != hashed_name(parent, data, collisions + 1)
    same = canonical(other) == canonical(data)
    assert (hashed_name(parent, other, collisions) == name) is same


def test_the_order_of_keys_and_unset_fields_do_not_matter():
    assert hashed_name("home", {"a": 1, "b": {"c": 2, "d": None}}) == hashed_name("home", {"b": {"c": 2}, "a": 1})
    assert hashed_name("home", ["a", "b"]) != hashed_name("home", ["b", "a"])


def test_typed_data_have_the_name_of_their_tree():
    spec = SiteSpec(image="nginx", replicas=2)
    read = decode(SiteSpec, encode(spec))
    tree = {"image": "nginx", "replicas": 2}
    assert hashed_name("home", {"spec": spec}) == hashed_name("home", {"spec": read})
    untyped = Unstructured({"metadata": {"name": "home"}})
    assert (
        hashed_name(site("home", "web"), tree) == hashed_name(untyped, Unstructured(tree)) == hashed_name("home", tree)
    )


def test_parents_whose_long_names_are_cut_have_children_of_different_names():
    parents = ["a" * 60 + end for end in "bc"]
    one, two = (hashed_name(parent, {}) for parent in parents)
    assert one[:52] == two[:52]
    assert one != two


def test_another_process_gives_the_same_name():
    """A name that depended on the process would replace all children at every restart."""
    code = "from steersman.objects import hashed_name; print(hashed_name('home', {'b': [1.5, 'x'], 'a': True}, 2))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert told == hashed_name("home", {"a": True, "b": [1.5, "x"]}, 2) == "home-qxvnq28tlw"


@pytest.mark.parametrize(("parent", "collisions", "words"), [("", 0, "no name"), ("home", -1, "at least 0")])
def test_mistakes_are_named(parent, collisions, words):
    with pytest.raises(ValueError, match=words):
        hashed_name(parent, {}, collisions)
