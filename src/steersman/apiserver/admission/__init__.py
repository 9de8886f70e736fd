"""Admission: changes to or rejections of a write before it is stored, in addition to the rules of its kind."""

from steersman.apiserver.admission.builtin_plugins import (
    builtin_plugins as builtin_plugins,
    chosen_plugins as chosen_plugins,
)
from steersman.apiserver.admission.definition_lifecycle import DefinitionLifecycle as DefinitionLifecycle
from steersman.apiserver.admission.plugins import (
    Admission as Admission,
    AdmissionFunction as AdmissionFunction,
    AdmissionOperation as AdmissionOperation,
    Attributes as Attributes,
    Plugin as Plugin,
    WriteView as WriteView,
)
from steersman.apiserver.admission.stored_plugins import StoredPlugins as StoredPlugins
from steersman.apiserver.admission.unsupported_features import UnsupportedFeatures as UnsupportedFeatures
