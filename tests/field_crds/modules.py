"""Where the definitions of the field come from: Go modules, at pinned versions, through Go's own client of its proxy.

Guarantees: a module is downloaded once for each machine, into Go's module cache, and verified by Go and against the
checksum here; nothing of one is kept in this repository.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Module:
    """A module at one version, and the folders or files in it with definitions."""

    path: str
    version: str
    checksum: str
    places: tuple[str, ...]


MODULES = {
    "cert-manager": Module(
        "github.com/cert-manager/cert-manager",
        "v1.21.2",
        "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        ("deploy/crds",),
    ),
    "cluster-api": Module(
        "sigs.k8s.io/cluster-api",
        "v1.14.2",
        "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
        (
            "core/config/crd/bases",
            "bootstrap/kubeadm/config/crd/bases",
            "controlplane/kubeadm/config/crd/bases",
            "cmd/clusterctl/config/crd/bases",
        ),
    ),
    "gateway-api": Module(
        "sigs.k8s.io/gateway-api",
        "v1.6.3",
        "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
        ("config/crd/experimental",),
    ),
    "prometheus-operator": Module(
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        ("example/prometheus-operator-crd",),
    ),
    "keda": Module(
        "github.com/kedacore/keda/v2",
        "v2.21.0",
        "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        ("config/crd/bases",),
    ),
    "source-controller": Module(
        "github.com/fluxcd/source-controller",
        "v1.9.6",
        "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=",
        ("config/crd/bases",),
    ),
    "istio": Module(
        "istio.io/api",
        "v1.31.1",
        "h1:5Yb5ihcz4YQsCkciusK7DnFpBMwRB6EFWeUKH1Atuyk=",
        ("kubernetes/customresourcedefinitions.gen.yaml",),
    ),
    "velero": Module(
        "github.com/vmware-tanzu/velero",
        "v1.18.3",
        "h1:9uwN5yxTWQl9PsF5ljX4xiG+7VIq3I9mxOQ0DyyZ31A=",
        ("config/crd/v1/bases", "config/crd/v2alpha1/bases"),
    ),
    "argo-rollouts": Module(
        "github.com/argoproj/argo-rollouts",
        "v1.10.1",
        "h1:6oyVPGiHHxu3ixkT6mngemh88HLPDoTX1IwO6KNR1Y4=",
        ("manifests/crds",),
    ),
    "external-secrets": Module(
        "github.com/external-secrets/external-secrets",
        "v1.3.2",
        "h1:u2J8RjlHIeF0oZCqtl92adI/uZWUwOesJIDkfql6LqQ=",
        ("config/crds/bases",),
    ),
}


def download(module: Module) -> Path:
    """The folder of a module; downloaded unless it was."""
    program = shutil.which("go")
    assert program is not None, "these tests download Go modules: put Go 1.26 or newer on PATH"
    with tempfile.TemporaryDirectory() as elsewhere:
        # outside of any module, whose own requirements would count
        done = subprocess.run(
            [program, "mod", "download", "-json", f"{module.path}@{module.version}"],
            cwd=elsewhere,
            env=os.environ | {"GOFLAGS": "-mod=mod", "GO111MODULE": "on"},
            capture_output=True,
            text=True,
            check=False,
        )
    told = json.loads(done.stdout or "{}")
    assert "Dir" in told, f"{module.path}@{module.version} could not be downloaded: {told.get('Error') or done.stderr}"
    assert told["Sum"] == module.checksum, f"{module.path}@{module.version} is not what it was: {told['Sum']}"
    return Path(told["Dir"])


def files(module: Module) -> list[Path]:
    """The files of a module that hold definitions."""
    folder = download(module)
    found: list[Path] = []
    for place in module.places:
        path = folder / place
        assert path.exists(), f"{path} is not there; see where {module.path} has its definitions now"
        found += [path] if path.is_file() else sorted(path.glob("*.yaml"))
    return found
