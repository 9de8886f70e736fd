"""The feature gates of the server, with kube-apiserver's names and defaults.

Only features that this server has are here: a stable feature needs no gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import msgspec

from steersman.objects import nearest
from steersman.wire import SHARD_GATE


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """Which features are on."""

    #: Lists and watches of a shard (KEP-5866), alpha in Kubernetes 1.36.
    sharded_list_and_watch: bool = False

    @classmethod
    def chosen(cls, gates: Mapping[str, bool]) -> Self:
        """The gates by their names; others have their defaults."""
        for name, value in gates.items():
            if name not in _FIELDS:
                near = nearest(name, _FIELDS)
                hint = f"did you mean {near}?" if near else f"available: {', '.join(_FIELDS)}"
                raise ValueError(f"feature_gates: {name!r} is not a feature gate of ApiServer; {hint}")
            if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - user
                raise TypeError(f"feature_gates: {name} must be True or False (got {value!r})")
        return cls(**{_FIELDS[name]: value for name, value in gates.items()})

    def listed(self) -> dict[tuple[str, str], int]:
        """Whether each feature is on, 1 or 0, by name and stage: the metric ``kubernetes_feature_enabled``."""
        return {(name, _STAGES[name]): int(getattr(self, field)) for name, field in _FIELDS.items()}


_FIELDS: Final = {SHARD_GATE: "sharded_list_and_watch"}
_STAGES: Final = {SHARD_GATE: "ALPHA"}
