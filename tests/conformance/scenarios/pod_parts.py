"""The subresources of Pods that change a part of them: ephemeralcontainers and resize."""

from __future__ import annotations

from typing import Any

from conformance.bodies import POD, Tree, container, merged, named, pod
from conformance.scenario import delete, get, patch, post, put, scenario

DEBUG = f"{POD}/a/ephemeralcontainers"
RESIZE = f"{POD}/a/resize"


def ephemeral(name: str = "debug", /, **fields: Any) -> Tree:
    return {"name": name, "image": "example.com/debug:1", **fields}


def added(*containers: Tree) -> Tree:
    return {"spec": {"ephemeralContainers": list(containers)}}


def sized(**resources: Any) -> Tree:
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


def amounts(cpu: str = "100m", memory: str = "64Mi", **more: str) -> Tree:
    return {"cpu": cpu, "memory": memory, **more}


BURSTABLE = pod(containers=[container(resources={"requests": amounts()})])
GUARANTEED = pod(containers=[container(resources={"requests": amounts(), "limits": amounts()})])


def debugged(name: str, *patches: Tree, rows: str = "Subresources, Kinds, Status errors") -> Any:
    return scenario(
        name,
        rows,
        post(POD, pod()),
        *(patch(DEBUG, one, "strategic") for one in patches),
        get(f"{POD}/a"),
        delete(f"{POD}/a"),
    )


def resized(name: str, body: Tree, *patches: Tree) -> Any:
    return scenario(
        name,
        "Subresources, Kinds, Status errors, generation",
        post(POD, body),
        *(patch(RESIZE, one, "strategic") for one in patches),
        get(f"{POD}/a"),
        delete(f"{POD}/a"),
    )


SCENARIOS = [
    debugged("ephemeral-container", added(ephemeral()), added(ephemeral("two", targetContainerName="main", stdin=True, tty=True))),
    debugged("ephemeral-defaults", added(ephemeral(image="x", env=[{"name": "A", "value": "b"}]))),
    debugged("ephemeral-names", added(ephemeral("main")), added(ephemeral("")), added(ephemeral("A b")), added(ephemeral(targetContainerName="other")), added(ephemeral(image=" x ")), added(ephemeral(image=""))),
    debugged("ephemeral-fields", *(added(ephemeral(**{name: value})) for name, value in {"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}, "livenessProbe": {"exec": {"command": ["x"]}}, "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}, "restartPolicy": "Always", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}.items())),
    debugged("ephemeral-mounts", added(ephemeral(volumeMounts=[{"name": "v", "mountPath": "/x"}])), added(ephemeral(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "a"}]))),
    debugged("ephemeral-stays", added(ephemeral()), added(ephemeral(image="other")), {"spec": {"ephemeralContainers": [{"name": "debug", "$patch": "delete"}]}}, {"spec": {"ephemeralContainers": None}}),
    debugged("ephemeral-and-nothing-else", merged(added(ephemeral()), {"metadata": {"labels": {"a": "b"}}}), {"spec": {"containers": [{"name": "main", "image": "other"}]}, "status": {"phase": "Running"}}),
    scenario("ephemeral-by-put", "Subresources, Kinds", post(POD, pod()), put(DEBUG, merged(pod(), added(ephemeral()))), put(DEBUG, pod()), get(DEBUG), put(f"{POD}/a", pod()), post(DEBUG, pod()), delete(DEBUG), delete(f"{POD}/a")),
    scenario("ephemeral-by-json-patch", "Subresources, Patch", post(POD, pod()), patch(DEBUG, [{"op": "add", "path": "/spec/ephemeralContainers", "value": [ephemeral()]}], "json"), patch(DEBUG, added(ephemeral("b")), "merge"), get(f"{POD}/a"), delete(f"{POD}/a")),
    scenario("ephemeral-of-a-missing-pod", "Subresources, Status errors", get(DEBUG), patch(DEBUG, added(ephemeral()), "strategic"), put(DEBUG, pod())),
    scenario("ephemeral-at-creation", "Kinds, Status errors", post(POD, merged(pod(), added(ephemeral()))), post(POD, pod()), patch(f"{POD}/a", added(ephemeral()), "strategic"), delete(f"{POD}/a")),
    scenario("ephemeral-dry-run", "Subresources, dryRun", post(POD, pod()), patch(DEBUG, added(ephemeral()), "strategic", dryRun="All"), get(f"{POD}/a"), delete(f"{POD}/a")),
    resized("resize", BURSTABLE, sized(requests=amounts("200m")), sized(requests=amounts("200m", "128Mi"), limits=amounts("1", "1Gi")), sized(requests=amounts("200m"))),
    resized("resize-by-class", GUARANTEED, sized(requests=amounts("50m")), sized(requests=amounts("50m"), limits=amounts("50m")), sized(limits=amounts("300m"))),
    resized("resize-of-others", BURSTABLE, sized(requests={"ephemeral-storage": "1Gi"}), sized(requests={"cpu": None}), sized(requests={"cpu": "-1"}), sized(requests={"cpu": "2"}, limits={"cpu": "1"})),
    resized("resize-and-nothing-else", BURSTABLE, merged(sized(requests=amounts("200m")), {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}), {"spec": {"containers": [{"name": "main", "image": "other"}], "nodeName": "n"}}),
    resized("resize-of-containers", BURSTABLE, {"spec": {"containers": [container(name="two")]}}, {"spec": {"initContainers": [container(name="two")]}}, {"spec": {"containers": [{"name": "main", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]}}),
    resized("resize-of-init-containers", pod(containers=[container(resources={"requests": amounts()})], initContainers=[container(name="i", resources={"requests": amounts()})]), {"spec": {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "5m"}}}]}}, {"spec": {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": None}}}]}}),
    resized("resize-of-a-pod-without-resources", pod(), sized(requests=amounts()), {"spec": {"resources": {"requests": {"cpu": "1"}}}}),
    resized("resize-of-a-whole-pod", pod(resources={"requests": amounts("1", "1Gi"), "limits": amounts("2", "2Gi")}), {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}, {"spec": {"resources": None}}, {"spec": {"resources": {"limits": {"cpu": None}}}}),
    scenario("resize-by-put", "Subresources", post(POD, BURSTABLE), put(RESIZE, pod(containers=[container(resources={"requests": amounts("300m")})])), get(RESIZE), put(f"{POD}/a", pod(containers=[container(resources={"requests": amounts("400m")})])), post(RESIZE, pod()), delete(RESIZE), delete(f"{POD}/a")),
    scenario("resize-by-merge-and-json-patch", "Subresources, Patch", post(POD, BURSTABLE), patch(RESIZE, [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "5m"}], "json"), patch(RESIZE, sized(requests=amounts("9m")), "merge"), get(f"{POD}/a"), delete(f"{POD}/a")),
    scenario("resize-by-apply", "Subresources, Apply", post(POD, BURSTABLE), patch(RESIZE, merged(named("v1", "Pod", "a"), sized(requests=amounts("5m"))), "apply", fieldManager="x", force="true"), get(f"{POD}/a"), delete(f"{POD}/a")),
]  # fmt: skip
