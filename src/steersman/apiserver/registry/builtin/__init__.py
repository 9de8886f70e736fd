"""Builtin: how Kubernetes' own kinds are filled in, judged and shown."""

from steersman.apiserver.registry.builtin.index import columns, not_validated, selectable, strategies

__all__ = ["columns", "not_validated", "selectable", "strategies"]
