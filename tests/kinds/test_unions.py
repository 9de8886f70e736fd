"""Values of several types: a change inside one keeps what the types do not know."""

from steersman.kinds.apiextensions_v1 import JSONSchemaProps
from steersman.objects import decode, encode


def test_a_change_inside_a_union_loses_nothing() -> None:
    raw = b'{"properties":{"a":{"items":{"type":"string","later":1}},"b":{"additionalProperties":{"type":"x","later":2}}}}'
    schema = decode(JSONSchemaProps, raw)
    schema.properties["a"].items.type = "integer"
    schema.properties["b"].additional_properties.type = "y"
    assert encode(schema) == raw.replace(b'"string"', b'"integer"').replace(b'"x"', b'"y"')
