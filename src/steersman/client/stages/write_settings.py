"""How a client writes."""

from __future__ import annotations

import msgspec

from steersman.wire import FieldValidation, PatchOptions


class WriteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The names under which a client writes, and how strictly."""

    #: The name under which this program owns fields; empty if none is set.
    field_manager: str = ""
    #: Its earlier names.
    formerly: tuple[str, ...] = ()
    field_validation: FieldValidation | None = None
    #: Whether to check our own resources' constraints before sending.
    validate: bool = True

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names."""
        return (self.field_manager, *self.formerly)

    def options(self, *, dry_run: bool = False, field_validation: FieldValidation | None = None) -> PatchOptions:
        """The options of one write."""
        return PatchOptions(
            dry_run=dry_run,
            field_manager=self.field_manager,
            field_validation=field_validation or self.field_validation,
        )
