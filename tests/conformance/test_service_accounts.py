"""With the plugin ServiceAccount, which both servers of the other tests leave out, Pods get the same accounts and tokens."""

from __future__ import annotations

import json
import re
from typing import Any

from conformance.bodies import POD, SERVICE_ACCOUNT, Tree, container, merged, pod, service_account
from conformance.player import Server
from conformance.report import describe
from conformance.scenario import Call, patch, post, scenario
from conformance.servers import engine_server
from conformance.stage import Stage

from steersman.apiserver import ApiServer
from steersman.testing import Engine

PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
MIRROR = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "yes"}}}
ENFORCED = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}


def without_suffix(tree: Any) -> Any:
    """An answer in which the generated name of the volume has no suffix."""
    return json.loads(re.sub(r"(?<=kube-api-access-)[a-z0-9]{5}\b", "suffix", json.dumps(tree)))


def tried(*bodies: Tree) -> list[Call]:
    return [post(POD, body, focus=without_suffix, dryRun="All") for body in bodies]


def secret_volume(name: str) -> list[Tree]:
    return [{"name": "v", "secret": {"secretName": name}}]


def from_secret(name: str) -> Tree:
    return {"env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]}


def account(name: str = "default", **fields: Any) -> Call:
    return post(SERVICE_ACCOUNT, service_account(name, **fields))


INIT = [container() | {"name": "init"}]
TOKEN = [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
SCENARIOS = [
    scenario("missing", "Kinds", tried(pod(), pod(serviceAccountName="odd"), merged(pod(serviceAccountName="odd"), {"metadata": {"name": None, "generateName": "a-"}}))),
    scenario(
        "token", "Kinds", account(), account("mine"),
        tried(
            pod(), pod(serviceAccountName="mine"), pod(serviceAccount="mine"), pod(initContainers=INIT),
            pod(containers=[container(volumeMounts=[{"name": "v", "mountPath": PATH}])], volumes=secret_volume("s")),
            pod(containers=[container(volumeMounts=[{"name": "v", "mountPath": PATH}])], volumes=secret_volume("s"), initContainers=INIT),
            pod(volumes=[{"name": "kube-api-access-mine", "emptyDir": {}}]), pod(automountServiceAccountToken=False),
            pod(volumes=[{"name": "kube-api-access", "emptyDir": {}}]), pod(containers=[]),
        ),
        post(POD, pod(), focus=without_suffix), patch(f"{POD}/a", {"metadata": {"labels": {"a": "b"}}}, focus=without_suffix),
    ),
    scenario(
        "wishes-of-the-account", "Kinds", account(automountServiceAccountToken=False, imagePullSecrets=[{"name": "a"}, {"name": "b"}]),
        account("mounting", automountServiceAccountToken=True),
        tried(
            pod(), pod(automountServiceAccountToken=True), pod(imagePullSecrets=[{"name": "c"}]),
            pod(serviceAccountName="mounting"), pod(serviceAccountName="mounting", automountServiceAccountToken=False),
        ),
    ),
    scenario(
        "mirror-pods", "Kinds", account(),
        tried(
            *(merged(pod(nodeName="here", **spec), MIRROR) for spec in (
                {}, {"serviceAccountName": "default"}, {"volumes": secret_volume("s")}, {"volumes": TOKEN},
                {"containers": [container(**from_secret("s"))]}, {"imagePullSecrets": [{"name": "c"}]},
                {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
                {"containers": [container(envFrom=[{"secretRef": {"name": "s"}}])]},
            ))
        ),
    ),
    scenario(
        "listed-secrets", "Kinds", post(SERVICE_ACCOUNT, merged(
            service_account("default", secrets=[{"name": "s"}], imagePullSecrets=[{"name": "p"}]), {"metadata": ENFORCED},
        )),
        tried(
            pod(), pod(volumes=secret_volume("s")), pod(volumes=secret_volume("t")),
            pod(containers=[container(**from_secret("s"))]), pod(containers=[container(**from_secret("t"))]),
            pod(initContainers=[INIT[0] | from_secret("t")]), pod(containers=[container(envFrom=[{"secretRef": {"name": "t"}}])]),
            pod(imagePullSecrets=[{"name": "p"}]), pod(imagePullSecrets=[{"name": "p"}, {"name": "q"}]),
        ),
    ),
    scenario("untainted", "Kinds", post("/api/v1/nodes", {"metadata": {"name": "{free}"}})),
]  # fmt: skip


async def test_pods_get_accounts_as_on_an_engine_with_the_plugin() -> None:
    """The options choose plugins by kube-apiserver's names, and with the same choice both answer alike."""
    off = "TaintNodesByCondition"
    server = ApiServer(enable_admission_plugins=["ServiceAccount"], disable_admission_plugins=[off])
    async with (
        Engine.start(flags={"kube-apiserver": [f"--disable-admission-plugins={off}"]}) as engine,
        engine_server(engine) as reference,
        server,
    ):
        stage = Stage(reference, Server("embedded", server.transport()))
        outcomes = await stage.outcomes(SCENARIOS)
    failures = [outcome if isinstance(outcome, Exception) else outcome.unexplained for outcome in outcomes.values()]
    assert outcomes.keys() == {each.name for each in SCENARIOS}
    assert not any(failures), "\n".join(
        str(each) if isinstance(each, Exception) else describe(each, *stage.names) for each in outcomes.values()
    )
