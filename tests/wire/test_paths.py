"""Paths of the API: printed, read, and safe against names that lead elsewhere."""

from __future__ import annotations

from string import ascii_lowercase, digits

import pytest
from hypothesis import given, strategies as st

from steersman.wire import ResourcePath, group_version_path, parse_path, quote_segment

segments = st.text(min_size=1).filter(lambda text: text not in {".", ".."} and not set(text) & {"/", "%"})
words = st.text(ascii_lowercase + digits, min_size=1, max_size=9)


@st.composite
def resource_paths(draw):
    name = draw(st.none() | segments)
    subresource = draw(st.none() | segments) if name is not None else None
    subpath = draw(st.none() | st.from_regex(r"[a-z0-9/]{0,9}", fullmatch=True)) if subresource is not None else None
    return ResourcePath(
        draw(st.just("") | segments),
        draw(segments),
        draw(words.filter(lambda word: word not in {"status", "finalize", "namespaces"})),
        draw(st.none() | segments),
        name,
        subresource,
        subpath,
    )


@given(resource_paths())
def test_a_path_is_read_back_as_it_was_printed(path):
    assert parse_path(path.path) == path


@given(resource_paths())
def test_a_printed_path_is_plain_ascii_without_anything_that_ends_a_path(path):
    """Neither a query, nor a fragment, nor a line break may come out of a name."""
    text = path.path
    assert text.isascii()
    assert not set(text) & set("?# \r\n\t\0")


@given(st.text())
def test_reading_never_fails(text):
    parse_path(text)
    parse_path("/api/v1/" + text)


@given(
    st.lists(st.sampled_from(["", "api", "apis", "v1", "namespaces", "a", "status", "..", ".", "%2F", "%41", "%", "x"]))
)
def test_what_is_read_can_be_printed_and_means_the_same(parts):
    path = parse_path("/api/v1/" + "/".join(parts))
    if path is not None and not set((path.subpath or "").split("/")) & {"..", "%"}:
        assert parse_path(path.path) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/api/v1/pods", ResourcePath("", "v1", "pods")),
        ("/api/v1/nodes/n1", ResourcePath("", "v1", "nodes", name="n1")),
        ("/api/v1/namespaces", ResourcePath("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", ResourcePath("", "v1", "namespaces", name="a")),
        ("/api/v1/namespaces/a/status", ResourcePath("", "v1", "namespaces", name="a", subresource="status")),
        ("/api/v1/namespaces/a/finalize", ResourcePath("", "v1", "namespaces", name="a", subresource="finalize")),
        ("/api/v1/namespaces/a/pods", ResourcePath("", "v1", "pods", "a")),
        ("/api/v1/namespaces/a/pods/b/log", ResourcePath("", "v1", "pods", "a", "b", "log")),
        ("/api/v1/namespaces/a/pods/b/proxy/x/y", ResourcePath("", "v1", "pods", "a", "b", "proxy", "x/y")),
        ("/api/v1/namespaces/a/pods/b/proxy/", ResourcePath("", "v1", "pods", "a", "b", "proxy", "")),
        (
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            ResourcePath("apps", "v1", "deployments", "a", "b", "scale"),
        ),
        ("/apis/g.io/v1/things/system:x", ResourcePath("g.io", "v1", "things", name="system:x")),
        ("/api/v1/namespaces/a/pods/b%20c", ResourcePath("", "v1", "pods", "a", "b c")),
    ],
)
def test_paths_of_the_api(text, path):
    assert path.path == text
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/version",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis//v1/pods",
        "api/v1/pods",
        "/api/v1/pods/..",
        "/api/v1/pods/.",
        "/api/v1/pods/a%2Fb",
        "/api/v1/pods/%2e%2e",
        "/api/v1/pods/a%zz",
        "/api/v1/pods/%ff",
        "/api/v1/namespaces//pods",
        "/openapi/v3",
    ],
)
def test_other_paths_are_none(text):
    assert parse_path(text) is None


def test_a_trailing_slash_does_not_matter():
    assert parse_path("/api/v1/pods/") == ResourcePath("", "v1", "pods")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2Fb", "../../secrets/x"])
def test_a_name_cannot_lead_elsewhere(name):
    """A name from a user's form must not reach another object."""
    with pytest.raises(ValueError, match="path"):
        quote_segment(name)
    for path in (
        ResourcePath("", "v1", "pods", "a", name),
        ResourcePath("", "v1", "pods", name, "a"),
        ResourcePath("", "v1", "pods", "a", "b", name),
    ):
        with pytest.raises(ValueError, match="path"):
            _ = path.path


@pytest.mark.parametrize(
    "path",
    [
        ResourcePath("", "v1", "pods", "a", None, "log"),
        ResourcePath("", "v1", "pods", "a", "b", None, "x"),
        ResourcePath("", "v1", "pods", "a", "b", "proxy", "../x"),
        ResourcePath("", "v1", "pods", "a", "b", "proxy", "x?y"),
        ResourcePath("", "v1", "pods", "a", "b", "proxy", "x\r\nHost: y"),
        ResourcePath("", "v1", "status", "a"),
        ResourcePath("", "v1", "namespaces", None, "a", "pods"),
    ],
)
def test_what_no_path_can_say_is_refused(path):
    with pytest.raises(ValueError, match=r"path|subresource"):
        _ = path.path


def test_group_version_paths():
    assert group_version_path("", "v1") == "/api/v1"
    assert group_version_path("apps", "v1") == "/apis/apps/v1"
    assert ResourcePath("", "v1", "pods", "a", "b", "log").collection == ResourcePath("", "v1", "pods", "a")
