"""Columns of hostile definitions; `tests/conformance/scenarios/custom_columns.py` compares ordinary ones with the engine."""

from steersman.apiserver.custom_resources.columns import columns_of
from steersman.apiserver.registry.json_path import JsonPath

TREE = {"metadata": {"name": "a"}}


def wide(count, broken):
    paths = [".spec[" if number == broken else ".metadata.name" for number in range(count)]
    return columns_of(
        {"additionalPrinterColumns": [{"name": "c", "type": "string", "jsonPath": path} for path in paths]}
    )


def test_a_broken_path_ends_the_columns_or_is_empty_far_out():
    """To parse tens of thousands of paths when a definition is stored would block the server."""
    assert [each.cell(TREE) for each in wide(600, 10)] == ["a"] * 10
    assert [each.cell(TREE) for each in wide(600, 550)] == [*["a"] * 550, None, *["a"] * 49]


def test_a_path_that_multiplies_its_values_finds_nothing():
    """Twenty-five doublings would be millions of values, a hundred more than any memory holds."""
    nested = "x"
    for _ in range(100):
        nested = [nested]
    assert JsonPath("." + "[0,0]" * 5).find({"": nested})
    assert JsonPath("." + "[0,0]" * 100).find({"": nested}) == []
    long = [[[1] * 1000]] * 1000
    assert len(JsonPath(".[*][*][*]").find({"": long})) == 1_000_000
    assert JsonPath(".[*,*,*][*][*]").find({"": long}) == []


def test_a_long_path_is_read_in_linear_time():
    deep = JsonPath(".a" * 200_000)
    assert deep.is_valid
    assert deep.find({"a": {"b": 1}}) == []
    assert not JsonPath("." + "['a'" * 100_000).is_valid
