"""Verbs of subresources with their own kinds, one file each."""

from steersman.apiserver.verbs.subresources.binding import create_binding as create_binding
from steersman.apiserver.verbs.subresources.custom import call_handler as call_handler
from steersman.apiserver.verbs.subresources.scale import scale as scale
from steersman.apiserver.verbs.subresources.subresource_verbs import SUBRESOURCE_VERBS as SUBRESOURCE_VERBS
