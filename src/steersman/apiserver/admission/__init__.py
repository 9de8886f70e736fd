"""Admission: changes to or rejections of a write before it is stored, in addition to the rules of its kind."""

from steersman.apiserver.admission.attributes import Admission, AdmissionFunction, Attributes, Operation, Plugin
from steersman.apiserver.admission.claim_growth import ClaimGrowth
from steersman.apiserver.admission.definition_lifecycle import DefinitionLifecycle
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from steersman.apiserver.admission.pod_classes import PodClasses
from steersman.apiserver.admission.unsupported_features import UnsupportedFeatures

__all__ = [
    "Admission",
    "AdmissionFunction",
    "Attributes",
    "ClaimGrowth",
    "DefinitionLifecycle",
    "NamespaceLifecycle",
    "Operation",
    "Plugin",
    "PodClasses",
    "UnsupportedFeatures",
]
