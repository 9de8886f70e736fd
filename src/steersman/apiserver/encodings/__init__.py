"""Encodings: JSON answers in the negotiated media type, whole or list item by list item."""

from steersman.apiserver.encodings.bodies import encoded as encoded
from steersman.apiserver.encodings.long_list import LongList as LongList
