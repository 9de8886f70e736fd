"""Evaluates the stored ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

from steersman.apiserver.policies.stored_plugins import stored_plugins as stored_plugins
