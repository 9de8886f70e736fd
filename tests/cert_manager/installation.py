"""One life of cert-manager on a cluster: installed, used, upgraded and removed. Each step records what it left or was told."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cert_manager.clusters import NAMESPACE, Cluster
from cert_manager.manifests import API, DOUBTFUL, certificate, certificate_request, issuer
from cert_manager.states import INSTALLED, events_in, issued, objects_at, steady

from samples.raw_api import MERGE, raw_api

SECONDS = 60.0
SHOP = "shop"
_CERTIFICATES = f"{API}/namespaces/{SHOP}/certificates"
_REQUESTS = f"{API}/namespaces/{SHOP}/certificaterequests"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_RELEASE = "cert-manager"
#: Leaders change soon after an upgrade; everything else has the chart's defaults.
_VALUES = ("--set", "crds.enabled=true", "--set", "global.leaderElection.retryPeriod=1s")
#: Of helm's output, what depends on the time or on this machine.
_TIMES = re.compile(r"^(LAST DEPLOYED:|I\d{4} ).*$", re.MULTILINE)


class Installation:
    """Plays the steps in order; `records` has what they left, by label."""

    def __init__(self, cluster: Cluster, *, helm: Path, chart: Path) -> None:
        self.records: dict[str, Any] = {}
        self._cluster = cluster
        self._api = cluster.api
        self._helm = helm
        self._chart = chart

    async def play(self) -> None:
        """Play all steps."""
        await self.install()
        await self.issue()
        await self.reject()
        await self.inject()
        await self.restrict()
        await self.upgrade()
        await self.uninstall()

    # steps

    async def install(self) -> None:
        """Install the chart and wait for its programs; helm waits for the chart's own check as well."""
        told = await self.helm("install", _RELEASE, str(self._chart), "--create-namespace", *_VALUES, "--wait")
        self.records["helm install"] = told
        for configuration in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            await self.until(f"{_HOOKS}/{configuration}/cert-manager-webhook", _has_authority)
        await self._leaders(transitions=0)
        self.records["helm status"] = await self.helm("status", _RELEASE)
        self.records["helm get manifest"] = await self.helm("get", "manifest", _RELEASE)
        self.records["objects after the installation"] = await objects_at(self._api, INSTALLED)

    async def issue(self) -> None:
        """Have an authority sign itself, and a certificate of it."""
        await self._api.made("POST", "/api/v1/namespaces", {"metadata": {"name": SHOP}})
        await self.create("issuers", issuer("root", selfSigned={}))
        await self.create("certificates", certificate("authority", "root", isCA=True, commonName="shop"))
        await self.ready("authority")
        await self.create("issuers", issuer("shop", ca={"secretName": "authority-tls"}))
        await self.create("certificates", certificate("home", "shop"))
        await self.ready("home")
        self.records["issued objects"] = await objects_at(self._api, issued(SHOP))

    async def reject(self) -> None:
        """Send objects that the webhook rejects, and requests for certificates of users."""
        for label, (resource, body) in DOUBTFUL.items():
            await self.record(f"create: {label}", "POST", f"{API}/namespaces/{SHOP}/{resource}", body)
        invalid = {"spec": {"dnsNames": None}}
        await self.record("update: no name at all", "PATCH", f"{_CERTIFICATES}/home", invalid)
        await self.record("dry run", "POST", f"{_CERTIFICATES}?dryRun=All", certificate("trial", "shop"))
        request = (await self._api.made("GET", f"{_REQUESTS}/home-1"))["spec"]["request"]
        await self.record("a user's request", "POST", _REQUESTS, certificate_request("own", request))
        changed = {"spec": {"issuerRef": {"name": "other"}}}
        await self.record("a request that changes", "PATCH", f"{_REQUESTS}/own", changed)

    async def inject(self) -> None:
        """Let the injector fill in the authority of a Certificate elsewhere."""
        annotations = {"cert-manager.io/inject-ca-from": f"{SHOP}/home"}
        hook = {
            "name": "orders.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {"namespace": SHOP, "name": "orders"}},
        }
        tree = {"metadata": {"name": "orders", "annotations": annotations}, "webhooks": [hook]}
        path = f"{_HOOKS}/validatingwebhookconfigurations"
        await self._api.made("POST", path, tree)
        found = await self.until(f"{path}/orders", _has_authority)
        secret = await self._api.made("GET", f"/api/v1/namespaces/{SHOP}/secrets/home-tls")
        assert found["webhooks"][0]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
        self.records["an injected configuration"] = steady(found)
        await self._api.made("DELETE", f"{path}/orders")

    async def restrict(self) -> None:
        """Change the approval of a request as a service account that may write requests."""
        account, rbac = "clerk", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SHOP}"
        await self._api.made("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": account}})
        resources = ["certificaterequests", "certificaterequests/status"]
        rule = {"apiGroups": ["cert-manager.io"], "resources": resources, "verbs": ["*"]}
        await self._api.made("POST", f"{rbac}/roles", {"metadata": {"name": account}, "rules": [rule]})
        binding = {
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
        }
        await self._api.made("POST", f"{rbac}/rolebindings", binding)
        kubeconfig = await self._cluster.pods.identity(account)
        condition = {"type": "Approved", "status": "True", "reason": "Mine", "message": "", "lastTransitionTime": None}
        request = (await self._api.made("GET", f"{_REQUESTS}/own"))["spec"]["request"]
        async with raw_api(kubeconfig) as api:
            answer = await api.send("POST", _REQUESTS, certificate_request("clerks", request))
            self.records["a clerk's request"] = (answer.code, answer.warnings, steady(answer.body))
            # The controller approves every request; only then is the answer the same each time.
            await self.until(f"{_REQUESTS}/clerks", _is_approved)
            body = {"status": {"conditions": [condition]}}
            answer = await api.send("PATCH", f"{_REQUESTS}/clerks/status", body, content_type=MERGE)
            self.records["a clerk's approval"] = (answer.code, answer.warnings, steady(answer.body))
        await self._api.made("DELETE", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}")

    async def upgrade(self) -> None:
        """Change the arguments of all programs: new ones take over, and the injected authority stays."""
        changes = ("--set", "global.logLevel=3", "--set", "webhook.timeoutSeconds=7")
        told = await self.helm("upgrade", _RELEASE, str(self._chart), *_VALUES, *changes, "--wait")
        self.records["helm upgrade"] = told
        found = await self.until(f"{_HOOKS}/validatingwebhookconfigurations/cert-manager-webhook", _has_authority)
        assert found["webhooks"][0]["timeoutSeconds"] == 7
        await self._leaders(transitions=1)
        await self.create("certificates", certificate("late", "shop"))
        await self.ready("late")
        label = "no name at all"
        await self.record(f"after the upgrade: {label}", "POST", _CERTIFICATES, DOUBTFUL[label][1])
        await self.ready("colored")
        # Programs record events after the fact: by now, those of the first certificates are stored.
        self.records["events"] = await events_in(self._api, SHOP, ("authority", "home"))
        await self._pods(3)
        self.records["objects after the upgrade"] = await objects_at(self._api, INSTALLED)

    async def uninstall(self) -> None:
        """Remove the release: the definitions and the certificates stay, and nothing checks them."""
        self.records["helm uninstall"] = await self.helm("uninstall", _RELEASE, "--wait")
        await self._pods(0)
        await self.until(f"/api/v1/namespaces/{NAMESPACE}/pods", lambda tree: not tree["items"])
        label = "no name at all"
        await self.record(f"without a webhook: {label}", "POST", _CERTIFICATES, DOUBTFUL[label][1])
        self.records["objects after the removal"] = await objects_at(self._api, INSTALLED)
        self.records["issued objects after the removal"] = await objects_at(self._api, issued(SHOP))

    # their parts

    async def helm(self, *arguments: str) -> str:
        """Run helm as administrator; its output."""
        home = self._cluster.folder / "helm"
        variables = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        process = await asyncio.create_subprocess_exec(
            *(str(self._helm), *arguments, "--namespace", NAMESPACE),
            env=os.environ | variables | {"KUBECONFIG": str(self._cluster.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            told, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        text = _TIMES.sub(r"\1", told.decode())
        assert process.returncode == 0, f"{self._cluster.name}: helm {' '.join(arguments)}: {text}"
        return text

    async def create(self, resource: str, body: dict[str, Any]) -> None:
        """Create an object in the namespace of the user."""
        await self._api.made("POST", f"{API}/namespaces/{SHOP}/{resource}", body)

    async def record(self, label: str, method: str, target: str, body: Any) -> None:
        """Send a request, and record the answer."""
        kind = MERGE if method == "PATCH" else "application/json"
        answer = await self._api.send(method, target, body, content_type=kind)
        self.records[label] = (answer.code, answer.warnings, steady(answer.body))

    async def ready(self, name: str) -> None:
        """Wait until a certificate was issued, and all that it needed is gone."""
        await self.until(f"{_CERTIFICATES}/{name}", _is_issued)
        path = f"/api/v1/namespaces/{SHOP}/secrets?labelSelector=cert-manager.io/next-private-key%3Dtrue"
        await self.until(path, lambda tree: not tree["items"])

    async def until(self, path: str, question: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until an object is as it should be; the object."""
        seen: Any = None
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    answer = await self._api.send("GET", path)
                    seen = answer.body
                    if answer.code == 200 and question(seen):
                        return seen
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"{self._cluster.name}: {path} did not become what it should: {seen}") from None

    async def _pods(self, number: int) -> None:
        """Wait until so many Pods of the Deployments are left."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/component%21%3Dstartupapicheck"
        await self.until(path, lambda tree: len(tree["items"]) == number)

    async def _leaders(self, *, transitions: int) -> None:
        """Wait until the controller and the injector lead, after so many changes of the leader."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        for name in ("cert-manager-controller", "cert-manager-cainjector-leader-election"):
            await self.until(f"{leases}/{name}", lambda tree: tree["spec"].get("leaseTransitions") == transitions)


def _has_authority(tree: dict[str, Any]) -> bool:
    return all(each["clientConfig"].get("caBundle") for each in tree["webhooks"])


def _is_issued(tree: dict[str, Any]) -> bool:
    status = tree.get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    return conditions == {"Ready": "True"} and "nextPrivateKeySecretName" not in status


def _is_approved(tree: dict[str, Any]) -> bool:
    return any(each["type"] == "Approved" for each in tree.get("status", {}).get("conditions", ()))
