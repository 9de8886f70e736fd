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
    from steersman.cli.generate.chart import generate_chart as generate_chart
    from steersman.cli.generate.crds import generate_crds as generate_crds
    from steersman.cli.generate.models import generate_models as generate_models
    from steersman.cli.generate.rbac import generate_rbac as generate_rbac
    from steersman.cli.generate.reference import generate_reference as generate_reference
    from steersman.cli.generate.webhooks import generate_webhooks as generate_webhooks
    from steersman.cli.logs import LogsOptions as LogsOptions, print_logs as print_logs
    from steersman.cli.migration.command import MigrateOptions as MigrateOptions, migrate as migrate
    from steersman.cli.new import new_project as new_project
    from steersman.cli.plan import PlanOptions as PlanOptions, plan_manager as plan_manager
    from steersman.cli.run_target import run_target as run_target
    from steersman.cli.serve import ServeOptions as ServeOptions, serve_api as serve_api
    from steersman.cli.simulate import SimulateOptions as SimulateOptions, simulate_operator as simulate_operator
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

    _get, __dir__ = lazy_names(
        __name__,
        {
            "steersman.cli.dcp": ["DcpOptions", "run_dcp"],
            "steersman.cli.demo.command": ["run_demo"],
            "steersman.cli.draw": ["DrawOptions", "draw_machines"],
            "steersman.cli.explain": ["explain"],
            "steersman.cli.generate.chart": ["generate_chart"],
            "steersman.cli.generate.crds": ["generate_crds"],
            "steersman.cli.generate.models": ["generate_models"],
            "steersman.cli.generate.rbac": ["generate_rbac"],
            "steersman.cli.generate.reference": ["generate_reference"],
            "steersman.cli.generate.webhooks": ["generate_webhooks"],
            "steersman.cli.logs": ["LogsOptions", "print_logs"],
            "steersman.cli.migration.command": ["MigrateOptions", "migrate"],
            "steersman.cli.new": ["new_project"],
            "steersman.cli.plan": ["PlanOptions", "plan_manager"],
            "steersman.cli.run_target": ["run_target"],
            "steersman.cli.serve": ["ServeOptions", "serve_api"],
            "steersman.cli.simulate": ["SimulateOptions", "simulate_operator"],
            "steersman.cli.up.command": ["run_up"],
            "steersman.cli.up.control": ["ControlOptions", "run_restart", "run_scale", "run_start", "run_stop"],
            "steersman.cli.up.conversion": ["ConvertOptions", "run_convert"],
            "steersman.cli.up.down": ["DownOptions", "run_down"],
            "steersman.cli.up.page": ["run_page"],
            "steersman.cli.up.places": ["PlaceOptions"],
            "steersman.cli.up.ps": ["PsOptions", "run_ps"],
            "steersman.cli.up.terminal_command": ["CommandOptions", "run_exec"],
            "steersman.cli.up.up_options": ["UpOptions"],
        },
    )

    def __getattr__(name):  # noqa: ANN001, ANN202 - typed by the imports above
        with uncollected_imports():
            return _get(name)
