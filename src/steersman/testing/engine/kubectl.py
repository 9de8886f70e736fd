"""Runs kubectl.

Guarantees: it never blocks the loop. Cancelling the caller ends kubectl. A failure carries kubectl's error output.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from steersman.testing.engine.errors import KubectlError


async def run_kubectl(
    program: Path,
    arguments: Sequence[str],
    *,
    kubeconfig: Path | None = None,
    stdin: str = "",
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run kubectl with `arguments` and return its output; raise `KubectlError` if it failed."""
    options: list[str] = []
    if kubeconfig is not None:
        # Its own cache: the default one is keyed by address, and ports are reused.
        options = [f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.with_name('kubectl-cache')}"]
    # Not asyncio's subprocess: event loops other than the standard library's may lack it.
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - starting takes a millisecond; the program is the one we found
        [str(program), *options, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=None if variables is None else dict(variables),
    )
    try:
        printed, complaint = await asyncio.to_thread(process.communicate, stdin)
    except asyncio.CancelledError:
        # The waiting thread then ends and reaps it.
        process.kill()
        raise
    if process.returncode:
        raise KubectlError(tuple(arguments), process.returncode, complaint)
    return printed
