"""Names and namespaces: path and object must agree."""

from __future__ import annotations

from steersman.apiserver.errors import bad_request
from steersman.apiserver.registry.definition import Definition, Tree


def take_namespace(definition: Definition, namespace: str, metadata: Tree) -> None:
    """Put an object into the namespace of its request; 400 if it names another."""
    if not definition.namespaced:
        metadata.pop("namespace", None)
        return
    own = metadata.get("namespace", "")
    if own and own != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def check_name(name: str, metadata: Tree) -> None:
    """400 unless an object has the name of its path."""
    own = metadata.get("name", "")
    if not own:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if own != name:
        raise bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")
