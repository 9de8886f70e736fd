"""Admission: changes to or rejections of a write before it is stored, in addition to the rules of its kind."""

from steersman.apiserver.admission.attributes import (
    Admission as Admission,
    AdmissionFunction as AdmissionFunction,
    Attributes as Attributes,
    Operation as Operation,
    Plugin as Plugin,
)
from steersman.apiserver.admission.claim_growth import ClaimGrowth as ClaimGrowth
from steersman.apiserver.admission.definition_lifecycle import DefinitionLifecycle as DefinitionLifecycle
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle as NamespaceLifecycle
from steersman.apiserver.admission.pod_classes import PodClasses as PodClasses
from steersman.apiserver.admission.unsupported_features import UnsupportedFeatures as UnsupportedFeatures
