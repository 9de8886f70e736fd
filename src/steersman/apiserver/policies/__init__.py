"""Evaluates the stored ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

from steersman.apiserver.policies.mutating_policy import MutatingPolicy as MutatingPolicy
from steersman.apiserver.policies.mutation import MutatingPolicies as MutatingPolicies
from steersman.apiserver.policies.registration import RegisteredPlugins as RegisteredPlugins
from steersman.apiserver.policies.stored_policies import StoredPolicies as StoredPolicies
from steersman.apiserver.policies.validating_policy import ValidatingPolicy as ValidatingPolicy
from steersman.apiserver.policies.validation import ValidatingPolicies as ValidatingPolicies
