"""The first lines of ``steersman up``."""

import subprocess
import sys


def test_the_services_are_shown_before_the_modules_of_a_server_are_imported():
    """Their import takes a second, during which the screen would be blank."""
    program = "import sys, steersman.cli.up.command; print([each for each in ('aiohttp', 'steersman.apiserver') if each in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_session_imports_only_what_it_serves():
    """The modules of kinds and plugins that no session needs would delay each start by a third of a second."""
    program = """
import asyncio, sys
from steersman.cli.up.foreground import run_session
from steersman.workloads import DeveloperControlPlane, simulated_parts
from steersman.workloads.kinds import Executable, ExecutableSpec
from steersman.objects import ObjectMeta

async def main():
    async with DeveloperControlPlane(parts=simulated_parts) as plane:
        executable = Executable(metadata=ObjectMeta(name="web"), spec=ExecutableSpec(executable_path="/bin/true"))
        await plane.client.apply(executable, force=True)
        await plane.client.get(Executable, "web")

asyncio.run(main())
print(*sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unneeded = {
        "aiohttp",
        "steersman.cel.rules",
        "steersman.kinds.core_v1",
        "steersman.apiserver.admission.pod_security",
        "steersman.apiserver.chain.rbac",
        "steersman.apiserver.discovery.openapi",
        "steersman.apiserver.policies",
        "steersman.apiserver.protobuf.writer",
        "steersman.apiserver.quotas",
        "steersman.apiserver.registry.crd.validation",
        "steersman.apiserver.webhooks.mutation",
        "steersman.patterns.children",
    }
    assert unneeded & set(result.stdout.split()) == set()
