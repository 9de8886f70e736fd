"""The kinds of the developer control plane, in the group ``usvc-dev.developer.microsoft.com/v1``.

Guarantees
- Names of fields and states are those of Microsoft's Developer Control Plane (DCP).
- What Steersman adds stands under ``spec.steersman`` and ``status.steersman``, where later fields of DCP cannot collide.
- What is not supported is rejected with a sentence: UDP services, executionType IDE, ContainerNetworkTunnelProxy.
"""

from steersman.workloads.kinds.additions import (
    ContainerAdditions,
    Dependency,
    FileWatch,
    ProcessAdditions,
    ProcessObservation,
    ReplicaSetAdditions,
    ReplicaSetObservation,
    RestartPolicy,
)
from steersman.workloads.kinds.container import (
    Container,
    ContainerExec,
    ContainerExecSpec,
    ContainerExecStatus,
    ContainerPort,
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    NetworkConnection,
    VolumeMount,
)
from steersman.workloads.kinds.container_image import ContainerBuildContext, ContainerLabel, CreateFileSystem
from steersman.workloads.kinds.container_network import (
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerNetworkSpec,
    ContainerNetworkState,
    ContainerNetworkStatus,
    ContainerVolume,
    ContainerVolumeSpec,
    ContainerVolumeState,
    ContainerVolumeStatus,
)
from steersman.workloads.kinds.environment import GROUP, VERSION, AmbientEnvironment, EnvVar
from steersman.workloads.kinds.executable import (
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableReplicaSetStatus,
    ExecutableSpec,
    ExecutableState,
    ExecutableStatus,
    ExecutableTemplate,
)
from steersman.workloads.kinds.health import (
    AddedProbe,
    ExecProbe,
    ExecutableProbe,
    HealthProbe,
    HealthProbeResult,
    HealthStatus,
    HttpProbe,
    ProbeOutcome,
    ProbeSchedule,
    TcpProbe,
)
from steersman.workloads.kinds.service import Endpoint, EndpointSpec, Service, ServiceSpec, ServiceStatus

#: Every kind that the developer control plane serves.
KINDS = (
    Executable,
    ExecutableReplicaSet,
    Service,
    Endpoint,
    Container,
    ContainerExec,
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerVolume,
)

__all__ = [
    "GROUP",
    "KINDS",
    "VERSION",
    "AddedProbe",
    "AmbientEnvironment",
    "Container",
    "ContainerAdditions",
    "ContainerBuildContext",
    "ContainerExec",
    "ContainerExecSpec",
    "ContainerExecStatus",
    "ContainerLabel",
    "ContainerNetwork",
    "ContainerNetworkConnection",
    "ContainerNetworkSpec",
    "ContainerNetworkState",
    "ContainerNetworkStatus",
    "ContainerPort",
    "ContainerSpec",
    "ContainerState",
    "ContainerStatus",
    "ContainerVolume",
    "ContainerVolumeSpec",
    "ContainerVolumeState",
    "ContainerVolumeStatus",
    "CreateFileSystem",
    "Dependency",
    "Endpoint",
    "EndpointSpec",
    "EnvVar",
    "ExecProbe",
    "Executable",
    "ExecutableProbe",
    "ExecutableReplicaSet",
    "ExecutableReplicaSetSpec",
    "ExecutableReplicaSetStatus",
    "ExecutableSpec",
    "ExecutableState",
    "ExecutableStatus",
    "ExecutableTemplate",
    "FileWatch",
    "HealthProbe",
    "HealthProbeResult",
    "HealthStatus",
    "HttpProbe",
    "NetworkConnection",
    "ProbeOutcome",
    "ProbeSchedule",
    "ProcessAdditions",
    "ProcessObservation",
    "ReplicaSetAdditions",
    "ReplicaSetObservation",
    "RestartPolicy",
    "Service",
    "ServiceSpec",
    "ServiceStatus",
    "TcpProbe",
    "VolumeMount",
]
