"""The verbs of a served resource, one file each."""

from steersman.apiserver.verbs.dispatch import perform

__all__ = ["perform"]
