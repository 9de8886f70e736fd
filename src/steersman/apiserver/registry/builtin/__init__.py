"""Builtin: the defaults, validation and tables of Kubernetes' own kinds."""

from steersman.apiserver.registry.builtin.index import columns, not_validated, selectable, strategies

__all__ = ["columns", "not_validated", "selectable", "strategies"]
