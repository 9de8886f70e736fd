"""Names, namespaces and storage keys of objects. Path and object must agree."""

from __future__ import annotations

from steersman.apiserver.errors import bad_request
from steersman.apiserver.registry.definition import Definition, Tree

#: Resources that kube-apiserver stores under other names.
_ENGINE_NAMES: dict[tuple[str, str], str] = {
    ("", "services"): "services/specs",
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "replicationcontrollers"): "controllers",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("policy", "podsecuritypolicies"): "podsecuritypolicy",
}


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


def engine_key(definition: Definition, namespace: str, name: str) -> str:
    """The storage key of an object in kube-apiserver, as in some of its messages."""
    group, resource = definition.gvk.group, definition.resource
    kept = _ENGINE_NAMES.get((group, resource))
    if kept is None:
        kept = f"{group}/{resource}" if definition.custom or group.startswith("api") else resource
    return f"/registry/{kept}/{namespace}/{name}" if definition.namespaced else f"/registry/{kept}/{name}"
