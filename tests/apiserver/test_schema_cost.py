"""What a schema costs: counted as documented, and read in less time than the schema takes to print."""

from __future__ import annotations

import json
from time import process_time  # noqa: TID251 - how long it takes is what is looked at

from steersman.apiserver.custom_resources.schema_cost import cost_of


def test_defaults_count_below_items_and_entries_alone():
    page = {"type": "object", "properties": {"title": {"type": "string", "default": "none"}}}
    assert cost_of(page).item_defaults == 0
    pages = {"properties": {"pages": {"type": "array", "items": page}, "named": {"additionalProperties": page}}}
    assert cost_of(pages).item_defaults == 2 * len('"none"')


def test_combined_schemas_fields_and_rules_count_as_steps():
    combined = {"anyOf": [{"not": {"type": "string"}}, {"allOf": [{}, {"required": ["a"]}]}]}
    assert cost_of(combined).steps == 5
    fields = {"properties": {f"field-{number}": {} for number in range(30)}, "required": ["field-1"] * 20}
    assert cost_of({"items": fields}).steps == 5
    assert cost_of({"x-kubernetes-validations": [{"rule": "true"}] * 3}).steps == 6


def test_rules_are_found_everywhere_with_their_loops():
    rule = {"rule": "self.all(x, x in self)", "messageExpression": "'no'"}
    schema = {"properties": {"a": {"items": {"x-kubernetes-validations": [rule]}}}, "not": {"properties": {"b": {}}}}
    assert cost_of(schema).rules == [(len(rule["rule"]), 2), (4, 0)]
    assert cost_of({"allOf": [{"properties": {"b": {"x-kubernetes-validations": [rule]}}}]}).rules


def test_many_fields_take_less_time_than_printing_them():
    """The server reads a new definition between two requests, so that all others wait for it."""
    schema = {"properties": {f"c{number}": {"type": "string", "description": "a"} for number in range(50_000)}}
    printed, read = [], []
    for _ in range(5):
        started = process_time()
        json.dumps(schema)
        printed.append(process_time() - started)
        started = process_time()
        cost_of(schema)
        read.append(process_time() - started)
    assert min(read) < min(printed), f"read in {min(read):.3f} s, printed in {min(printed):.3f} s"
