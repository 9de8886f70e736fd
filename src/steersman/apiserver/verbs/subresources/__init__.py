"""Verbs of subresources with their own kinds, one file each."""

from steersman.apiserver.verbs.subresources.binding import bind as bind
from steersman.apiserver.verbs.subresources.handlers import SUBRESOURCE_VERBS as SUBRESOURCE_VERBS
from steersman.apiserver.verbs.subresources.scale import scale as scale
