"""The command lines of an engine's programs.

Guarantee: a flag given by a test replaces ours of the same name, and is passed unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")

# Enough for common tests: cascading deletion, namespace deletion, workloads that create Pods. Each controller costs
# memory and requests; `flags={"kube-controller-manager": ["--controllers=*"]}` runs them all.
_CONTROLLERS = tuple(
    """
    garbage-collector-controller namespace-controller clusterrole-aggregation-controller cronjob-controller
    daemonset-controller deployment-controller disruption-controller endpointslice-controller job-controller
    persistentvolumeclaim-protection-controller replicaset-controller replicationcontroller-controller
    resourcequota-controller serviceaccount-controller statefulset-controller ttl-after-finished-controller
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Topology:
    """The parts of an engine, and additional flags of its programs."""

    api_servers: int = 1
    etcd_members: int = 1
    controller_manager: bool = False
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def __post_init__(self) -> None:
        if self.api_servers < 1:
            raise ValueError(f"an engine needs at least one API server (got {self.api_servers})")
        if self.etcd_members not in {1, 3}:
            raise ValueError(f"an engine needs one etcd member or three (got {self.etcd_members})")
        unknown = sorted(set(self.flags) - set(PROGRAMS))
        if unknown:
            raise ValueError(f"flags are per program ({', '.join(PROGRAMS)}); unknown: {', '.join(unknown)}")

    def programs(self) -> tuple[str, ...]:
        """The required programs."""
        return PROGRAMS if self.controller_manager else PROGRAMS[:2]


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    """The addresses of one etcd member."""

    name: str
    client_url: str
    peer_url: str


@dataclass(frozen=True, slots=True)
class Secrets:
    """The files with the keys and identities of the programs."""

    ca_file: Path
    server_cert_file: Path
    server_key_file: Path
    signing_key_file: Path
    token_file: Path


def etcd_flags(member: EtcdAddress, members: Sequence[EtcdAddress], *, data: Path, token: str) -> list[str]:
    """The flags of one etcd member among `members`."""
    # A single member has no rivals: it elects itself within a quarter of a second instead of after a whole one.
    # Shorter heartbeats start it no sooner, and cost CPU time for as long as the engine runs.
    heartbeat, election = (50, 250) if len(members) == 1 else (50, 500)
    return [
        f"--name={member.name}",
        f"--data-dir={data}",
        f"--listen-client-urls={member.client_url}",
        f"--advertise-client-urls={member.client_url}",
        f"--listen-peer-urls={member.peer_url}",
        f"--initial-advertise-peer-urls={member.peer_url}",
        f"--initial-cluster={','.join(f'{other.name}={other.peer_url}' for other in members)}",
        f"--initial-cluster-token={token}",
        f"--heartbeat-interval={heartbeat}",
        f"--election-timeout={election}",
        "--socket-reuse-port=true",
        # A killed process loses nothing; only a power cut would.
        "--unsafe-no-fsync=true",
    ]


def api_server_flags(*, port: int, etcd: Sequence[EtcdAddress], secrets: Secrets, cert_dir: Path) -> list[str]:
    """The flags of one API server."""
    return [
        f"--etcd-servers={','.join(member.client_url for member in etcd)}",
        f"--cert-dir={cert_dir}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        # Without these, an API server cannot run on a machine without a default route.
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={secrets.server_cert_file}",
        f"--tls-private-key-file={secrets.server_key_file}",
        f"--client-ca-file={secrets.ca_file}",
        f"--token-auth-file={secrets.token_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={secrets.signing_key_file}",
        f"--service-account-signing-key-file={secrets.signing_key_file}",
        # Pods may be created before their service account exists.
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
    ]


def controller_manager_flags(*, port: int, kubeconfig: Path, secrets: Secrets, cert_dir: Path) -> list[str]:
    """The flags of the controller manager."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--cert-dir={cert_dir}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        f"--tls-cert-file={secrets.server_cert_file}",
        f"--tls-private-key-file={secrets.server_key_file}",
        "--leader-elect=false",
        f"--controllers={','.join(_CONTROLLERS)}",
        f"--service-account-private-key-file={secrets.signing_key_file}",
        "--use-service-account-credentials=false",
        # The defaults protect a real cluster; a test would wait for them.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def merged(ours: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Our flags without those that the test replaces, followed by the test's."""
    replaced = {flag.partition("=")[0] for flag in given}
    return (*(flag for flag in ours if flag.partition("=")[0] not in replaced), *given)
