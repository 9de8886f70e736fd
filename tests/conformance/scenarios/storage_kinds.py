"""Volumes, their classes, drivers and attachments: defaults, refusals, changes."""

from __future__ import annotations

from typing import Any

from conformance.bodies import Tree, merged, named
from conformance.trials import Changes, Trials, change_scenarios, status_scenarios, trial_scenarios

STORAGE = "/apis/storage.k8s.io/v1"
CLASS = f"{STORAGE}/storageclasses"
DRIVER = f"{STORAGE}/csidrivers"
NODE = f"{STORAGE}/csinodes"
ATTACHMENT = f"{STORAGE}/volumeattachments"
ATTRIBUTES = f"{STORAGE}/volumeattributesclasses"
CAPACITY = f"{STORAGE}/namespaces/{{ns}}/csistoragecapacities"
VOLUME = "/api/v1/persistentvolumes"
TERM = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}
AFFINITY = {"required": {"nodeSelectorTerms": [TERM]}}


def storage_class(**fields: Any) -> Tree:
    return merged(named("storage.k8s.io/v1", "StorageClass", "{free}", provisioner="example.com/p"), fields)


def topology(*expressions: Tree) -> Tree:
    return {"matchLabelExpressions": list(expressions)}


def volume(**spec: Any) -> Tree:
    given = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return named("v1", "PersistentVolume", "{free}", spec=merged(given, spec))


def source(**spec: Any) -> Tree:
    return volume(hostPath=None, **spec)


def driver(**spec: Any) -> Tree:
    return named("storage.k8s.io/v1", "CSIDriver", "{free}", spec=spec)


def csi_node(*drivers: Tree) -> Tree:
    return named("storage.k8s.io/v1", "CSINode", "{free}", spec={"drivers": list(drivers)})


def attachment(**spec: Any) -> Tree:
    given = {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    return named("storage.k8s.io/v1", "VolumeAttachment", "{free}", spec=merged(given, spec))


def inline(**spec: Any) -> Tree:
    given = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "example.com", "volumeHandle": "h"}}
    return attachment(source={"persistentVolumeName": None, "inlineVolumeSpec": merged(given, spec)})


def attributes(**fields: Any) -> Tree:
    given = {"driverName": "example.com", "parameters": {"iops": "1"}}
    return merged(named("storage.k8s.io/v1", "VolumeAttributesClass", "{free}", **given), fields)


def capacity(**fields: Any) -> Tree:
    return merged(named("storage.k8s.io/v1", "CSIStorageCapacity", "a", storageClassName="c"), fields)


TRIALS: Trials = {
    "storage-class-defaults": (
        CLASS,
        [
            storage_class(),
            storage_class(reclaimPolicy="", volumeBindingMode=None),
            storage_class(allowVolumeExpansion=True, mountOptions=["ro"], parameters={"a": "b"}),
        ],
    ),
    "storage-class-fields": (
        CLASS,
        [
            storage_class(provisioner=""),
            storage_class(provisioner="Example.com/P"),
            storage_class(provisioner="a b/c"),
            storage_class(reclaimPolicy="Recycle"),
            storage_class(volumeBindingMode="Later"),
            storage_class(volumeBindingMode=""),
            storage_class(parameters={"": "x"}),
            storage_class(parameters={str(at): "x" for at in range(513)}),
            storage_class(provisioner="?", reclaimPolicy="?", volumeBindingMode="?", parameters={"": ""}),
        ],
    ),
    "storage-class-topologies": (
        CLASS,
        [
            storage_class(allowedTopologies=given)
            for given in (
                [topology({"key": "a", "values": ["b"]})],
                [topology({"key": "a", "values": []})],
                [topology({"key": "a b", "values": ["b", "b"]})],
                [topology({"key": "a", "values": ["b"]}, {"key": "a", "values": ["c"]})],
                [topology({"key": "a", "values": ["b"]}), topology({"key": "a", "values": ["b"]})],
                [topology({"key": "beta.kubernetes.io/os", "values": ["linux"]})],
            )
        ],
    ),
    "volume-defaults": (
        VOLUME,
        [
            volume(),
            volume(persistentVolumeReclaimPolicy="", volumeMode=None),
            source(nfs={"server": "s", "path": "/p"}, mountOptions=["ro"]),
            source(iscsi={"targetPortal": "p", "iqn": "iqn.2015-02.example.com:t"}),
            source(csi={"driver": "example.com", "volumeHandle": "h"}),
            volume(storageClassName="c", claimRef={"name": "c", "namespace": "d"}),
        ],
    ),
    "volume-capacities": (
        VOLUME,
        [
            volume(capacity=given)
            for given in ({"storage": "0"}, {"storage": "-1"}, {"storage": None}, {"cpu": "1"}, {"storage": "100m"})
        ]
        + [merged(volume(), {"spec": {"capacity": None}})],
    ),
    "volume-modes": (
        VOLUME,
        [
            volume(accessModes=None),
            volume(accessModes=[]),
            volume(accessModes=["Sometimes"]),
            volume(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
            volume(accessModes=["ReadWriteOncePod"]),
            volume(volumeMode="Tape"),
            volume(persistentVolumeReclaimPolicy="Burn"),
            volume(persistentVolumeReclaimPolicy="Recycle"),
            volume(persistentVolumeReclaimPolicy="Recycle", hostPath={"path": "/x/.."}),
            volume(persistentVolumeReclaimPolicy="Recycle", hostPath={"path": "//"}),
            volume(storageClassName="A b", volumeAttributesClassName=""),
            volume(volumeAttributesClassName="A b"),
        ],
    ),
    "volume-sources": (
        VOLUME,
        [
            source(),
            volume(nfs={"server": "s", "path": "/p"}),
            volume(cephfs={"monitors": ["m"]}, flexVolume={}),
            volume(hostPath={"path": ""}),
            volume(hostPath={"path": "/a/../b", "type": "Odd"}),
            source(nfs={"path": "p"}),
            source(fc={}),
            source(fc={"targetWWNs": ["a"], "wwids": ["b"], "lun": 256}),
            source(fc={"targetWWNs": ["a"]}),
            source(rbd={"monitors": [], "image": ""}),
            source(cephfs={"monitors": []}),
            source(glusterfs={"endpoints": "", "path": "", "endpointsNamespace": "A"}),
            source(flocker={}),
            source(flocker={"datasetName": "a/b", "datasetUUID": "c"}),
        ],
    ),
    "volume-sources-of-clouds": (
        VOLUME,
        [
            source(gcePersistentDisk={"pdName": "", "partition": 256}),
            source(awsElasticBlockStore={"volumeID": "", "partition": -1}),
            source(azureDisk={"diskName": "", "diskURI": ""}),
            source(azureDisk={"diskName": "d", "diskURI": "u", "kind": "Odd", "cachingMode": "Odd"}),
            source(azureDisk={"diskName": "d", "diskURI": "u", "kind": "Managed"}),
            source(azureFile={"secretName": "", "shareName": "", "secretNamespace": ""}),
            source(cinder={"volumeID": "", "secretRef": {}}),
            source(vsphereVolume={"volumePath": ""}),
            source(portworxVolume={"volumeID": ""}),
            source(photonPersistentDisk={"pdID": ""}),
            source(quobyte={"registry": "", "volume": ""}),
            source(quobyte={"registry": "a,b:1", "volume": "v"}),
            source(scaleIO={"gateway": "", "system": "", "secretRef": None}),
            source(storageos={"volumeName": "A", "volumeNamespace": "B", "secretRef": {}}),
            source(flexVolume={"driver": "", "options": {"kubernetes.io/a": "b"}}),
        ],
    ),
    "volume-sources-of-networks": (
        VOLUME,
        [
            source(iscsi=given)
            for given in (
                {"targetPortal": "", "iqn": "", "lun": 256},
                {"targetPortal": "p", "iqn": "x", "chapAuthSession": True},
                {"targetPortal": "p", "iqn": "iqn.x", "secretRef": {}},
                {"targetPortal": "p" * 64, "iqn": "eui.0123456789abcdef", "initiatorName": "x"},
                {"targetPortal": "p", "iqn": "naa.x", "initiatorName": "iqn.x"},
            )
        ],
    ),
    "volume-sources-of-drivers": (
        VOLUME,
        [
            source(csi=given)
            for given in (
                {},
                {"driver": "A.b", "volumeHandle": "h"},
                {"driver": "a b" * 30, "volumeHandle": ""},
                {
                    "driver": "d",
                    "volumeHandle": "h",
                    "nodePublishSecretRef": {},
                    "controllerExpandSecretRef": {"name": "A", "namespace": "B"},
                },
            )
        ],
    ),
    "local-volumes": (
        VOLUME,
        [
            source(local={"path": "/x"}),
            source(local={"path": "/x"}, nodeAffinity=AFFINITY),
            source(local={"path": ""}, nodeAffinity={}),
            source(local={"path": "../x"}, nodeAffinity={"required": {"nodeSelectorTerms": []}}),
            volume(
                nodeAffinity={
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a b", "operator": "Near"}]}]}
                }
            ),
            volume(
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}
                        ]
                    }
                }
            ),
        ],
    ),
    "volume-annotations": (
        VOLUME,
        [
            merged(body, {"metadata": {"annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}}})
            for body in (volume(), source(nfs={"server": "s", "path": "/p"}))
        ]
        + [merged(volume(), {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "c"}}})],
    ),
    "drivers": (
        DRIVER,
        [
            driver(),
            driver(attachRequired=False, podInfoOnMount=True),
            driver(fsGroupPolicy="Odd"),
            driver(volumeLifecycleModes=["Ephemeral", "Odd"]),
            driver(nodeAllocatableUpdatePeriodSeconds=9),
            driver(serviceAccountTokenInSecrets=True),
            driver(tokenRequests=[{"audience": "a"}]),
            driver(tokenRequests=[{"audience": "a"}, {"audience": "a"}], serviceAccountTokenInSecrets=False),
            driver(
                tokenRequests=[
                    {"audience": "a", "expirationSeconds": 599},
                    {"audience": "b", "expirationSeconds": 1 << 33},
                ]
            ),
            driver(preventPodSchedulingIfMissing=True),
            merged(driver(), {"metadata": {"name": "A"}}),
        ],
    ),
    "driver-nodes": (
        NODE,
        [
            csi_node({"name": "d", "nodeID": "n"}),
            csi_node({"name": "", "nodeID": ""}),
            csi_node({"name": "d" * 64, "nodeID": "n" * 257}),
            csi_node({"name": "d", "nodeID": "n"}, {"name": "d", "nodeID": "m"}),
            csi_node({"name": "d", "nodeID": "n", "allocatable": {"count": -1}}),
            csi_node({"name": "d", "nodeID": "n", "topologyKeys": ["a", "a", "", "a b"]}),
        ],
    ),
    "attachments": (
        ATTACHMENT,
        [
            attachment(),
            attachment(attacher=""),
            attachment(attacher="A b", nodeName="A b", source={"persistentVolumeName": "A b"}),
            attachment(source={"persistentVolumeName": ""}),
            attachment(source={"persistentVolumeName": None}),
            merged(attachment(), {"status": {"attached": True}}),
        ],
    ),
    "inline-attachments": (
        ATTACHMENT,
        [
            inline(),
            inline(csi=None),
            inline(capacity={"storage": "1Gi"}, claimRef={"name": "c"}, storageClassName="c", nodeAffinity=AFFINITY),
            inline(persistentVolumeReclaimPolicy="Delete", volumeMode="Block", accessModes=[]),
            merged(inline(), {"spec": {"source": {"persistentVolumeName": "v"}}}),
        ],
    ),
    "attributes-classes": (
        ATTRIBUTES,
        [
            attributes(driverName="", parameters=None),
            attributes(driverName="a b", parameters={"": "x"}),
        ],
    ),
    "storage-capacities": (
        CAPACITY,
        [
            capacity(),
            capacity(storageClassName=""),
            capacity(storageClassName="A b", capacity="-1"),
            capacity(nodeTopology={"matchLabels": {"a b": "c"}}, maximumVolumeSize="-1"),
        ],
    ),
}

CHANGES: Changes = {
    "a-storage-class": (
        CLASS,
        storage_class(parameters={"a": "b"}),
        [
            {"provisioner": "example.com/q"},
            {"parameters": {"c": "d"}},
            {"parameters": None},
            {"reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"},
            {"allowVolumeExpansion": True},
            {"allowedTopologies": [topology({"key": "a", "values": ["b"]})]},
            {"metadata": {"labels": {"a": "b c"}}},
        ],
    ),
    "a-volume": (
        VOLUME,
        volume(),
        [
            {"spec": {"capacity": {"storage": "2Gi"}}},
            {"spec": {"hostPath": {"path": "/y"}}},
            {"spec": {"hostPath": None, "nfs": {"server": "s", "path": "/p"}}},
            {"spec": {"volumeMode": "Block"}},
            {"spec": {"persistentVolumeReclaimPolicy": "Delete", "storageClassName": "c"}},
            {"spec": {"nodeAffinity": AFFINITY}},
            {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{}]}}}},
            {"spec": {"accessModes": []}},
            {"metadata": {"labels": {"a": "b c"}}},
            {"metadata": {"finalizers": None}},
        ],
    ),
    "a-driver-volume": (
        VOLUME,
        source(csi={"driver": "example.com", "volumeHandle": "h"}),
        [
            {"spec": {"csi": {"controllerExpandSecretRef": {"name": "s", "namespace": "n"}}}},
            {"spec": {"csi": {"controllerExpandSecretRef": {"name": "t"}}}},
            {"spec": {"csi": {"volumeAttributes": {"a": "b"}}}},
            {"spec": {"volumeAttributesClassName": "c"}},
            {"spec": {"volumeAttributesClassName": None}},
            {"metadata": {"finalizers": None}},
        ],
    ),
    "a-driver": (
        DRIVER,
        driver(),
        [
            {"spec": {"attachRequired": False}},
            {"spec": {"volumeLifecycleModes": ["Ephemeral"]}},
            {"spec": {"podInfoOnMount": True}},
            {"spec": {"tokenRequests": [{"audience": "a"}]}},
            {"spec": {"storageCapacity": True}},
        ],
    ),
}

STATUSES: Changes = {
    "a-volume": (
        VOLUME,
        volume(),
        [
            {"status": {"phase": "Available"}, "spec": {"storageClassName": "c"}},
            {"status": {"phase": "Available", "message": "m"}, "metadata": {"labels": {"a": "b"}}},
            {"status": {"phase": "Bound", "lastPhaseTransitionTime": "2024-01-02T03:04:05Z"}},
        ],
    ),
    "an-attachment": (
        ATTACHMENT,
        attachment(),
        [
            {"status": {"attached": True}, "metadata": {"labels": {"a": "b"}}},
            {"status": {"attachError": {"message": "m", "time": "2024-01-02T03:04:05Z", "errorCode": -1}}},
            {"status": {"detachError": {"message": "m" * 1025}}},
            {"status": {"attachmentMetadata": {"a": "b"}}, "spec": {"nodeName": "m"}},
        ],
    ),
}

SCENARIOS = [*trial_scenarios(TRIALS), *change_scenarios(CHANGES), *status_scenarios(STATUSES)]
