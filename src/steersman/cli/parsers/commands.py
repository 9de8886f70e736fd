"""The functions of the commands and the types of their options, each imported when it is used.

Help and errors of the command line need no server and no manager, whose import takes a second.
"""

# ruff: noqa: PLC0414 - a list of names for others, as in an `__init__`

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.cli.dcp import DcpOptions as DcpOptions, run_dcp as run_dcp
    from steersman.cli.demo.command import run_demo as run_demo
    from steersman.cli.draw import DrawOptions as DrawOptions, draw_machines as draw_machines
    from steersman.cli.explain import explain as explain
    from steersman.cli.generate.crds import generate_crds as generate_crds
    from steersman.cli.generate.models import generate_models as generate_models
    from steersman.cli.generate.rbac import generate_rbac as generate_rbac
    from steersman.cli.generate.webhooks import generate_webhooks as generate_webhooks
    from steersman.cli.logs import LogsOptions as LogsOptions, print_logs as print_logs
    from steersman.cli.new import new_project as new_project
    from steersman.cli.plan import PlanOptions as PlanOptions, plan_manager as plan_manager
    from steersman.cli.run_target import run_target as run_target
    from steersman.cli.serve import ServeOptions as ServeOptions, serve_api as serve_api
    from steersman.cli.up.command import run_up as run_up
    from steersman.cli.up.control import (
        ControlOptions as ControlOptions,
        run_restart as run_restart,
        run_scale as run_scale,
        run_start as run_start,
        run_stop as run_stop,
    )
    from steersman.cli.up.conversion import ConvertOptions as ConvertOptions, run_convert as run_convert
    from steersman.cli.up.down import DownOptions as DownOptions, run_down as run_down
    from steersman.cli.up.page import run_page as run_page
    from steersman.cli.up.places import PlaceOptions as PlaceOptions
    from steersman.cli.up.ps import PsOptions as PsOptions, run_ps as run_ps
    from steersman.cli.up.terminal_command import CommandOptions as CommandOptions, run_exec as run_exec
    from steersman.cli.up.up_options import UpOptions as UpOptions
else:
    from steersman._lazy_names import lazy_names
    from steersman.cli.uncollected_imports import uncollected_imports

    _get, __dir__ = lazy_names()

    def __getattr__(name):  # noqa: ANN001, ANN202 - typed by the imports above
        with uncollected_imports():
            return _get(name)
