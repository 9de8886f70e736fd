"""What docs/on-call.md tells people to alert on is what a manager shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import yaml

from steersman.telemetry import CounterOf, GaugeOf, HistogramOf, names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "on-call.md").read_text(encoding="utf-8")
METRIC = re.compile(r"\b(?:controller_runtime|workqueue|rest_client|leader_election|certwatcher|steersman)_[a-z_]+\b")

tool = runpy.run_path(str(ROOT / "tools" / "run-page"), run_name="run_page")


def rules() -> list[dict[str, Any]]:
    (text,) = (block.text for block in tool["blocks"](PAGE) if block.name == "alerts.yaml")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def declared() -> dict[str, Any]:
    found = [value for value in vars(names).values() if isinstance(value, (CounterOf, GaugeOf, HistogramOf))]
    return {metric.name: metric for metric in found}


def test_every_metric_of_the_page_exists() -> None:
    known = declared()
    assert {name.removesuffix("_bucket") for name in METRIC.findall(PAGE)} - known.keys() == set()


def test_every_metric_is_on_the_page() -> None:
    told = set(METRIC.findall(PAGE))
    untold = declared().keys() - told
    # nothing limits or repeats requests unless a program asks for it
    assert untold == {"rest_client_rate_limiter_duration_seconds", "rest_client_request_retries_total"}


def test_alerts_ask_for_labels_that_their_metrics_have() -> None:
    known = declared()
    for rule in rules():
        metrics = {name.removesuffix("_bucket") for name in METRIC.findall(rule["expr"])}
        for labels in re.findall(r"by \(([^)]*)\)", rule["expr"]):
            asked = {label.strip() for label in labels.split(",")} - {"le"}
            assert all(asked <= set(known[name].labels) for name in metrics), rule["alert"]
        assert rule["annotations"]["summary"]
