"""The examples as their docstrings say to run and to try them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from samples.stage import EXAMPLES, load, seen
from steersman import ObjectMeta
from steersman.manager import Manager

NAMES = (
    "site_operator",
    "secret_reflector",
    "restart_on_change",
    "external_job",
    "immutable_settings",
    "namespace_quota",
    "once",
    "schedule",
    "postgres_cluster.operator",
    "application_namespace.operator",
)


@pytest.mark.parametrize("name", NAMES)
async def test_what_there_is_to_try_is_accepted(engine, namespace, name):
    """Every object of a docstring passes the server's validation, and every manager has something to run."""
    example = load(name)
    assert isinstance(example.manager, Manager)
    assert example.manager.blueprints
    assert f"steersman run examples.{name}" in example.__doc__
    for manifest in re.findall(r"<<< '(.*?)'", example.__doc__, re.DOTALL):
        await engine.kubectl("create", "--dry-run=server", "-f", "-", f"--namespace={namespace}", stdin=manifest)


async def test_an_example_runs_from_the_command_line(engine, client, namespace):
    """It installs its definitions, works, and ends well after a signal."""
    once = load("once")
    environment = os.environ | {"KUBECONFIG": str(engine.kubeconfig)}
    program = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("steersman"), "run", "examples.once", "--install-crds",
        cwd=EXAMPLES.parent, env=environment, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        spec = once.TaskSpec(argv=["echo", "hello"])
        await client.create(once.Task(metadata=ObjectMeta(name="one"), spec=spec))
        found = await seen(client, once.Task, "one", lambda found: found.status and found.status.phase == "Succeeded")
        assert found.status.output == "hello\n"
        program.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            _, logged = await program.communicate()
        assert program.returncode == 0, logged.decode()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
