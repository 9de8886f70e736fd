"""The same schedule gives the same trace, byte for byte, in processes with other hash seeds and other addresses."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROGRAM = Path(__file__).with_name("repeated_runs.py")

pytestmark = pytest.mark.slow


async def traces(seed, process):
    path = os.pathsep.join((str(TESTS), str(TESTS.parent)))
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), process, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await program.communicate()
    assert program.returncode == 0, err.decode()[-4000:]
    return json.loads(out)


@pytest.fixture(scope="module")
async def runs():
    """The traces of all scenarios, from two processes."""
    return await asyncio.gather(traces("1", "plain"), traces("2", "disturbed"))


@pytest.mark.parametrize("faults", ["", ", with faults"], ids=["no fault", "faults"])
@pytest.mark.parametrize(
    "scenario",
    [
        "site operator",
        "generated children",
        "node ports",
        "namespace deleted",
        "definition replaced",
        "external system",
        "mistakes",
        "two replicas",
    ],
)
def test_two_processes_have_the_same_trace(runs, scenario, faults):
    """A violation is worth nothing if its schedule does not show it again elsewhere."""
    one, other = (traces[scenario + faults] for traces in runs)
    assert len(one) > 20
    different = next((number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    assert different is None, f"entry {different}:\n{one[different]}\n{other[different]}"
    assert len(one) == len(other)


def test_faults_happen_in_these_runs(runs):
    """A trace without faults would say nothing about how they are carried out."""
    for name, lines in runs[0].items():
        if name.endswith("with faults") and not name.startswith(("node ports", "mistakes")):
            assert any('"fault"' in line for line in lines), name
