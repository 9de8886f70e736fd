"""Admission: changes to or rejections of a write before it is stored, in addition to the rules of its kind."""

from steersman.apiserver.admission.attributes import Admission, AdmissionFunction, Attributes, Operation, Plugin
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from steersman.apiserver.admission.not_yet import NotYet

__all__ = ["Admission", "AdmissionFunction", "Attributes", "NamespaceLifecycle", "NotYet", "Operation", "Plugin"]
