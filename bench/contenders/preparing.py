"""Contenders made ready to run: Go programs built, kopf installed, both kept outside of the checkout.

A folder of the cache is named after a hash of all that decides its content, so one machine prepares once, and what was
changed is prepared anew. A contender that cannot be made ready raises `CannotPrepare`, which says what is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import BenchmarkFailed

BENCH = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).resolve().parent
KOPF_LOCK = BENCH.parent / "requirements" / "bench-kopf.txt"


class CannotPrepare(BenchmarkFailed):
    """A contender could not be built or installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A program that does the benchmark's work."""

    name: str
    #: Makes it ready, and gives the command that runs it.
    prepare: Callable[[], list[str]]
    #: Whether it goes on reconciling. A loader only writes once.
    reconciles: bool = True
    #: Whether it takes part when nobody says who does.
    by_default: bool = True


def contenders() -> dict[str, Contender]:
    """All of them, in the order of the table."""
    found = (
        Contender(name="steersman", prepare=_steersman),
        Contender(name="kopf", prepare=_kopf),
        Contender(name="controller-runtime", prepare=lambda: [str(go_program(BENCH / "controller_runtime"))]),
        Contender(
            name="controller-runtime-tuned", prepare=lambda: [str(go_program(BENCH / "controller_runtime")), "-tuned"]
        ),
        Contender(name="bare", prepare=_bare, reconciles=False),
        Contender(
            name="bare-go", prepare=lambda: [str(go_program(BENCH / "bare_go"))], reconciles=False, by_default=False
        ),
    )
    return {each.name: each for each in found}


def cache_root() -> Path:
    """The folder for everything that is prepared for benchmarks of this user."""
    chosen = os.environ.get("STEERSMAN_BENCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steersman" / "bench"


def python_environment() -> dict[str, str]:
    """Compiled modules are kept, whatever the caller's environment says: an image has them compiled already."""
    return {"PYTHONPYCACHEPREFIX": str(cache_root() / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}


def say(text: str) -> None:
    """Tell the person at the terminal."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _kept(name: str, inputs: Sequence[Path], salt: str, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills, from the cache if nothing has changed since."""
    digest = hashlib.sha256(salt.encode())
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    target = cache_root() / f"{name}-{digest.hexdigest()[:16]}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=target.parent) as scratch:
            whole = Path(scratch) / "whole"
            make(whole)
            # Until this moment nothing looks complete.
            whole.rename(target)
    return target


def _run(command: list[str], *, contender: str, **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise CannotPrepare(
            f"{contender} could not be made ready: {' '.join(command)} failed, see below; or leave it out with --only\n"
            f"{(done.stderr or done.stdout)[-4000:]}"
        )


def _compile(contender: str, python: str, modules: str) -> None:
    """Import what a program imports, so that its first round does not compile what its others find compiled."""
    _run([python, "-c", f"import {modules}"], contender=contender, env=os.environ | python_environment(), cwd=PROGRAMS)


def _steersman() -> list[str]:
    _compile("steersman", sys.executable, "steersman_sites, steersman.cli.run, steersman.transport.http")
    return [sys.executable, str(PROGRAMS / "steersman_sites.py")]


def _bare() -> list[str]:
    _compile("bare", sys.executable, "aiohttp")
    return [sys.executable, str(PROGRAMS / "bare_sites.py")]


def go_program(folder: Path, name: str = "sites") -> Path:
    """The program of a Go module, built unless it was: the tests have one too."""
    module = folder.name
    program = shutil.which("go")

    def make(target: Path) -> None:
        if program is None:
            raise CannotPrepare(
                f"{module} could not be made ready: building it needs Go 1.26 or newer on PATH; or leave it out with --only"
            )
        say(f"building {module}, up to 3 minutes on 2 cores, once")
        environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        command = [
            program,
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            "-s -w",
            "-o",
            str(target / name),
            ".",
        ]
        _run(command, contender=module, cwd=folder, env=environment)

    inputs = sorted(path for path in folder.iterdir() if path.suffix in {".go", ".mod", ".sum"})
    return _kept(module, inputs, "", make) / name


def _kopf() -> list[str]:
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))

    def make(target: Path) -> None:
        if uv is None:
            raise CannotPrepare("kopf could not be made ready: installing it needs uv; or leave it out with --only")
        say("installing kopf, once")
        _run([uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(target)], contender="kopf")
        python = str(target / "bin" / "python")
        _run(
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", str(KOPF_LOCK)],
            contender="kopf",
        )

    environment = _kept("kopf", [KOPF_LOCK], sys.version, make)
    python = str(environment / "bin" / "python")
    _compile("kopf", python, "kopf, kopf.cli, kubernetes_asyncio")
    # Alone (no peering to look for) and quiet: both spare it work that the others do not do either.
    return [python, "-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet", str(PROGRAMS / "kopf_sites.py")]
