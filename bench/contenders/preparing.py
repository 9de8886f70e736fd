"""Prepares contenders: builds Go programs and installs kopf, both outside the checkout.

A cache directory is named after a hash of its inputs, so a machine prepares once, and again after a change. Of two
processes that need the same directory, one prepares it while the other waits. A contender that cannot be prepared raises
`CannotPrepare` with what is missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    #: Prepares it, and returns the command that runs it.
    prepare: Callable[[], list[str]]
    #: Whether it keeps reconciling. A loader only writes once.
    reconciles: bool = True
    #: Whether it takes part by default.
    by_default: bool = True


def contenders() -> dict[str, Contender]:
    """All contenders, in the order of the table."""
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
    """The directory for everything prepared for benchmarks of this user."""
    chosen = os.environ.get("STEERSMAN_BENCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steersman" / "bench"


def keep_compiled_modules() -> None:
    """Make this process and all that it starts keep compiled modules, whatever the caller's environment says.

    An installed program has them compiled as well. `bench/__main__.py` calls this before it imports a benchmark.
    """
    prefix = str(cache_root() / "compiled")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Wait until no other process prepares ``name``; the system frees the lock of a process that was killed."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that prepares {name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kept(name: str, inputs: Sequence[Path], salt: str, make: Callable[[Path], None]) -> Path:
    """The directory that ``make`` fills, from the cache if its inputs are unchanged."""
    digest = hashlib.sha256(salt.encode())
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    target = cache_root() / f"{name}-{digest.hexdigest()[:16]}"
    if target.is_dir():
        return target
    with one_at_a_time(target.name):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=target.parent) as scratch:
                whole = Path(scratch) / "whole"
                make(whole)
                # Until here, nothing looks complete.
                whole.rename(target)
    return target


def _run(command: list[str], *, contender: str, **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise CannotPrepare(
            f"cannot prepare {contender}: {' '.join(command)} failed, see below; or leave it out with --only\n"
            f"{(done.stderr or done.stdout)[-4000:]}"
        )


def _compile(contender: str, python: str, modules: str) -> None:
    """Import a program's modules, so that its first round does not compile what later rounds find compiled."""
    _run([python, "-c", f"import {modules}"], contender=contender, cwd=PROGRAMS)


def _steersman() -> list[str]:
    _compile("steersman", sys.executable, "steersman_sites, steersman.cli.run, steersman.transport.http")
    return [sys.executable, str(PROGRAMS / "steersman_sites.py")]


def _bare() -> list[str]:
    _compile("bare", sys.executable, "aiohttp")
    return [sys.executable, str(PROGRAMS / "bare_sites.py")]


def go_program(folder: Path, name: str = "sites", package: str = ".", *, test: bool = False) -> Path:
    """The program of a Go module, or of a package that it requires, built if necessary; also used by the tests.

    ``test`` builds the program of the package's tests.
    """
    module = folder.name
    program = shutil.which("go")

    def make(target: Path) -> None:
        if program is None:
            raise CannotPrepare(
                f"cannot prepare {module}: building it needs Go 1.26 or newer on PATH; or leave it out with --only"
            )
        say(f"building {module}, up to {4 if test else 3} minutes on 2 cores, once")
        environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        command = [
            program,
            *(("test", "-c", "-vet=off") if test else ("build",)),
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            "-s -w",
            "-o",
            str(target / name),
            package,
        ]
        _run(command, contender=module, cwd=folder, env=environment)

    inputs = sorted(path for path in folder.iterdir() if path.suffix in {".go", ".mod", ".sum"})
    return _kept(module, inputs, "", make) / name


def _kopf() -> list[str]:
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))

    def make(target: Path) -> None:
        if uv is None:
            raise CannotPrepare("cannot prepare kopf: installing it needs uv; or leave it out with --only")
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
    # Standalone (no peering) and quiet: both avoid work that the others do not do either.
    return [python, "-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet", str(PROGRAMS / "kopf_sites.py")]
