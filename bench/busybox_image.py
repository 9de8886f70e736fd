"""An image with busybox alone, for containers on a machine that reaches no registry."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

IMAGE = "localhost/steersman-busybox:1"
#: What a container runtime inside a container needs, as containers.conf.
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
"""
_APPLETS = (
    "sh",
    "ls",
    "cat",
    "sleep",
    "echo",
    "nc",
    "wget",
    "httpd",
    "env",
    "id",
    "nslookup",
    "mkdir",
    "stat",
    "true",
    "false",
)


def make_image(*program: str) -> None:
    """Import the image unless the runtime has it: Podman, or the one of this command line."""
    program = program or ("podman",)
    if subprocess.run([*program, "image", "inspect", IMAGE], check=False, capture_output=True).returncode == 0:
        return
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for folder in ("bin", "tmp", "etc", "www"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add("/bin/busybox", "bin/busybox")
        for applet in _APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    subprocess.run([*program, "import", "-", IMAGE], input=archive.getvalue(), check=True, capture_output=True)


def write_containers_conf(folder: Path) -> dict[str, str]:
    """Write the settings of Podman; returns the variable that names them."""
    file = folder / "containers.conf"
    file.write_text(CONTAINERS_CONF, encoding="utf-8")
    return {"CONTAINERS_CONF": str(file)}
