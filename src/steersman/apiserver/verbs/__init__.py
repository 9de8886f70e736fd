"""Verbs: what can be done with a served resource, one file each."""

from steersman.apiserver.verbs.dispatch import perform

__all__ = ["perform"]
