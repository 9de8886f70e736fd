"""The verbs of a served resource, one file each."""

from steersman.apiserver.verbs.dispatch import perform as perform
