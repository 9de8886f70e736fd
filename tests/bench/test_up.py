"""The benchmark of up: every tool runs the same application, the script is the shop, and a small run measures."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from bench.devserver import free_port
from bench.up import PORTS, SCRIPT, SHOP, STEERSMAN, Measured, copy_shop, difference
from bench.up_tools import SERVICES, Tool, compose_file, process_compose_file, running, steersman_file
from steersman.application import load_application

NUMBERS = {name: 20000 + number for number, name in enumerate(SERVICES)}


@pytest.mark.parametrize(("file", "make"), [("steersman.yaml", steersman_file), ("compose.yaml", compose_file)])
def test_the_six_services_are_read_without_a_warning(tmp_path: Path, file: str, make):
    (tmp_path / file).write_text(make(NUMBERS))
    application = load_application(tmp_path, environment={})
    assert not application.warnings
    needs = {name: tuple(each.service for each in service.depends_on) for name, service in application.services.items()}
    assert needs == SERVICES


def test_process_compose_has_the_same_order_and_probes():
    ours, theirs = (
        json.loads(steersman_file(NUMBERS))["services"],
        json.loads(process_compose_file(NUMBERS))["processes"],
    )
    for name, service in ours.items():
        assert theirs[name]["command"] == f"exec {service['command']}"
        assert list(theirs[name]["depends_on"]) == list(service["depends_on"])
        probe = theirs[name]["readiness_probe"]
        address = "http://{host}:{port}{path}".format(**probe["http_get"])
        assert (address, f"{probe['period_seconds']}s") == (
            service["healthcheck"]["http"],
            service["healthcheck"]["interval"],
        )


def test_the_script_starts_the_programs_of_the_shop_with_its_probes(tmp_path: Path):
    script = re.sub(r"\s+", " ", (SHOP.parents[1] / "bench" / "up_shop.sh").read_text().replace("\\\n", ""))
    services = load_application(SHOP, environment={}).services
    for name in ("redis", "schema", "api", "worker", "web", "assets"):
        assert " ".join(word or '""' for word in services[name].command) in script
    for name in ("api", "web", "assets"):
        assert f"poll answers {services[name].healthcheck.action.url}" in script
    ports = copy_shop(tmp_path / "shop")
    texts = "".join(file.read_text() for file in (tmp_path / "shop").iterdir() if file.is_file())
    assert not [port for port in PORTS if port in texts]
    assert all(str(port) in texts for port in ports.values())


def test_differences_are_formed_within_a_round():
    rounds = {STEERSMAN: [2.0, 9.0, 3.0], SCRIPT: [1.0, 7.5, 1.0]}
    bar = difference(Measured("start of the shop", "s", rounds=rounds))
    assert (bar.value, bar.bar, bar.holds) == (1.5, 1.5, True)


async def test_a_small_run_measures_start_memory_and_stop(tmp_path: Path):
    port = free_port()
    serve = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
    tool = Tool(name="server", file="text", text="", up=serve)
    async with running(tool, tmp_path, os.environ) as session:
        await session.until_answers([port])
        assert session.process.pid in session.pids()
        assert session.memory() > 1
        assert await session.rest(0.01) >= 0
        assert await session.stop() > 0
    assert session.pids() == []
