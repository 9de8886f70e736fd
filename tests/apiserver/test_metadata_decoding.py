"""Decoding of metadata: the fast way gives what the careful one gives."""

import copy

import pytest

from steersman.apiserver.decoding.custom_fields import read_fields
from steersman.apiserver.go_types.reader import Unreadable, read_tree
from steersman.apiserver.go_types.shapes import object_meta

NAMES = (
    "finalizers",
    "labels",
    "annotations",
    "ownerReferences",
    "managedFields",
    "namespace",
    "generation",
    "deletionGracePeriodSeconds",
    "nothing",
)


def decoded(read, metadata):
    """What decoding makes of metadata: a tree with the number of unknown fields, or the message of a refusal."""
    given = copy.deepcopy(metadata)
    try:
        return read(given)
    except Unreadable as error:
        return str(error), given


def carefully(metadata):
    tree, findings = read_tree(metadata, object_meta())
    return tree, len(findings)


def quickly(metadata):
    tree = {"metadata": metadata}
    findings = read_fields({}, tree, has_form=True)
    return tree["metadata"], len(findings)


@pytest.mark.parametrize("empty", [[], {}, "", None, 0, False], ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_field_is_dropped_kept_or_refused_as_with_care(name, empty):
    """A patch that removes the last finalizer leaves an empty list, and is as common as objects that go."""
    for other in ({}, {"labels": {"a": "b"}}, {"annotations": {"a": 5}}):
        metadata = {"name": "a", **other, name: empty}
        assert decoded(quickly, metadata) == decoded(carefully, metadata)
