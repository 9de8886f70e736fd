"""Verbs of subresources with their own kinds, one file each."""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: most servers never answer most of them.
if TYPE_CHECKING:
    from steersman.apiserver.verbs.subresources.binding import create_binding as create_binding
    from steersman.apiserver.verbs.subresources.custom import call_handler as call_handler
    from steersman.apiserver.verbs.subresources.scale import answer_scale as answer_scale
    from steersman.apiserver.verbs.subresources.subresource_verbs import SUBRESOURCE_VERBS as SUBRESOURCE_VERBS
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.verbs.subresources.binding": ["create_binding"],
            "steersman.apiserver.verbs.subresources.custom": ["call_handler"],
            "steersman.apiserver.verbs.subresources.scale": ["answer_scale"],
            "steersman.apiserver.verbs.subresources.subresource_verbs": ["SUBRESOURCE_VERBS"],
        },
    )
