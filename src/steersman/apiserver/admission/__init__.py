"""Admission: what may change or refuse a write before it is stored, beside the rules of its kind."""

from steersman.apiserver.admission.attributes import Admission, Attributes, Operation, Plugin
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle

__all__ = ["Admission", "Attributes", "NamespaceLifecycle", "Operation", "Plugin"]
