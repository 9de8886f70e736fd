"""The image of ``steersman serve`` and of operators, on a real Podman: small, without root, with a read-only root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.busybox_image import write_containers_conf
from samples.container_runtimes import needs_podman, temporary_image
from samples.eventually import eventually
from samples.portions import ALL
from steersman import Client, ObjectMeta, Unstructured
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import eventually as has

ROOT = Path(__file__).parents[2]
#: As a cluster with the restricted Pod security standard runs it.
RESTRICTED = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges")
pytestmark = [
    needs_podman,
    pytest.mark.slow,
    pytest.mark.skipif(not ALL, reason="downloads packages of the distribution: tools/image and .ci/full build it"),
]


class Podman:
    """Podman with the settings that a container runtime inside a container needs."""

    def __init__(self, folder: Path) -> None:
        self.environment = os.environ | write_containers_conf(folder)

    def __call__(self, *arguments: str | Path) -> str:
        return self.run("podman", *arguments).stdout.strip()

    def run(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(each) for each in command], check=False, capture_output=True, text=True, env=self.environment
        )
        assert not check or done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done

    @contextmanager
    def container(self, *arguments: str) -> Iterator[str]:
        """A container that runs in the background; its name."""
        name = self("run", "--detach", *RESTRICTED, *arguments)
        try:
            yield name
        finally:
            self.run("podman", "rm", "--force", "--time", "0", "--volumes", name)


@pytest.fixture(scope="module")
def podman(tmp_path_factory) -> Podman:
    return Podman(tmp_path_factory.mktemp("podman"))


@pytest.fixture(scope="module")
def image(podman) -> Iterator[str]:
    with temporary_image() as tag:
        podman.run(sys.executable, ROOT / "tools" / "image", tag)
        yield tag


def kubeconfig_of(podman: Podman, name: str, folder: Path) -> Path:
    """The server's kubeconfig, with the port that Podman publishes."""
    file = folder / "kubeconfig"
    podman("cp", f"{name}:/data/kubeconfig", file)
    published = podman("port", name, "6443/tcp")
    file.write_text(file.read_text(encoding="utf-8").replace("127.0.0.1:6443", published), encoding="utf-8")
    return file


def serves(podman: Podman, name: str) -> bool:
    """Whether the server has printed where its kubeconfig is."""
    state, logs = podman("inspect", "--format", "{{.State.Status}}", name), podman.run("podman", "logs", name)
    assert state == "running", logs.stdout + logs.stderr
    return "export KUBECONFIG=/data/kubeconfig" in logs.stdout


def status(podman: Podman, name: str) -> list[str]:
    """What the kernel says of the container's process."""
    process = podman("inspect", "--format", "{{.State.Pid}}", name)
    return Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()


async def test_the_server_answers_without_root_on_a_read_only_root_and_keeps_its_objects(podman, image, tmp_path):
    volume = f"st-{os.getpid()}"
    served = ("--publish", "127.0.0.1::6443", "--volume", f"{volume}:/data", image)
    try:
        with podman.container(*served) as name:
            await eventually(lambda: serves(podman, name))
            async with Client.connect(
                kubeconfig=kubeconfig_of(podman, name, tmp_path), field_manager="tests"
            ) as client:
                made = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
            assert "Uid:\t65532\t65532\t65532\t65532" in status(podman, name)
            assert "CapEff:\t0000000000000000" in status(podman, name)
            podman("stop", "--time", "30", name)
            assert podman("inspect", "--format", "{{.State.ExitCode}}", name) == "0"
        with podman.container(*served) as name:
            await eventually(lambda: serves(podman, name))
            async with Client.connect(
                kubeconfig=kubeconfig_of(podman, name, tmp_path), field_manager="tests"
            ) as client:
                assert (await client.get(ConfigMap, "default/a")).uid == made.uid
    finally:
        podman.run("podman", "volume", "rm", "--force", volume)


BOAT = {
    "apiVersion": "image.example.com/v1",
    "kind": "Boat",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"masts": 3},
}
OPERATOR = """\
from steersman import Manager, ObjectMeta, Resource, Spec, Status, generates
from steersman.kinds.core_v1 import ConfigMap


class BoatSpec(Spec):
    masts: int = 1


class Boat(Resource[BoatSpec, Status], group="image.example.com", version="v1"):
    pass


@generates(Boat, children=(ConfigMap,))
def rig(boat: Boat) -> list[ConfigMap]:
    return [ConfigMap(metadata=ObjectMeta(name=boat.key.name), data={"masts": str(boat.spec.masts)})]


manager = Manager(name="boats")
manager.add(rig)
"""


def is_established(crd: CustomResourceDefinition) -> bool:
    conditions = crd.status.conditions if crd.status is not None else None
    return any(each.type == "Established" and each.status == "True" for each in conditions or [])


async def test_an_operator_runs_on_the_image(podman, image, tmp_path):
    """A file is copied into a second image; it runs with the restrictions of the first."""
    (tmp_path / "boats.py").write_text(OPERATOR, encoding="utf-8")
    file = tmp_path / "Containerfile"
    file.write_text(f'FROM {image}\nCOPY boats.py ./\nENTRYPOINT ["steersman", "run", "boats"]\n', encoding="utf-8")
    with temporary_image() as operator, podman.container("--publish", "127.0.0.1::6443", image) as server:
        podman("build", "--network", "none", "--tag", operator, tmp_path)
        await eventually(lambda: serves(podman, server))
        beside = (f"--network=container:{server}", f"--volumes-from={server}", "--env=KUBECONFIG=/data/kubeconfig")
        with podman.container(*beside, operator, "--install-crds") as name:
            kubeconfig = kubeconfig_of(podman, server, tmp_path)
            async with Client.connect(kubeconfig=kubeconfig, field_manager="tests") as client:
                await has(client, CustomResourceDefinition, "boats.image.example.com", is_established, within=60)
                await client.create(Unstructured(BOAT))
                try:
                    await has(client, ConfigMap, "default/a", has={"data": {"masts": "3"}}, within=60)
                except AssertionError as error:
                    error.add_note(podman.run("podman", "logs", name).stderr)
                    raise


INSIDE = """
import json, os, pathlib, ssl, stat, sys
import cryptography, re2, steersman
files = [path for top in ("/bin", "/etc", "/lib", "/usr") for path in pathlib.Path(top).rglob("*") if not path.is_symlink()]
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "privileged": [str(path) for path in files if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) and path.is_file()],
    "shells": [str(path) for path in files if path.name in ("sh", "bash", "dash", "apt", "dpkg", "pip", "pip3") and path.is_file()],
    "writable": [str(path) for path in files if os.access(path, os.W_OK)],
    "authorities": len(ssl.create_default_context().get_ca_certs()),
    "compiled": os.path.exists(steersman.__cached__),
    "copyrights": len(list(pathlib.Path("/usr/share/doc").glob("*/copyright"))),
    "packages": len(list(pathlib.Path("/var/lib/dpkg/status.d").iterdir())),
    "installer": __import__("importlib.util").util.find_spec("pip") is not None,
}))
"""


def test_the_image_is_small_and_has_neither_a_shell_nor_anything_privileged(podman, image):
    found = json.loads(podman("run", "--rm", *RESTRICTED, "--entrypoint", "/usr/bin/python3", image, "-c", INSIDE))
    assert found["user"] == [65532, 65532]
    assert (found["privileged"], found["shells"], found["writable"], found["installer"]) == ([], [], [], False)
    assert found["authorities"] > 50, "TLS to public servers"
    assert found["compiled"], "nothing can write bytecode later"
    assert found["packages"] > 20, "scanners find the packages of the distribution"
    assert found["copyrights"] > 20, "licenses are distributed with the packages"
    assert int(podman("image", "inspect", "--format", "{{.Size}}", image)) < 140_000_000
    assert podman("run", "--rm", *RESTRICTED, image, "--version").startswith("steersman ")
