"""examples/restart_on_change.py: what its users see."""

from __future__ import annotations

from samples.stage import load, running, seen
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    Container,
    EnvFromSource,
    PodSpec,
    PodTemplateSpec,
    Secret,
    SecretEnvSource,
)
from steersman.kinds.meta_v1 import LabelSelector

example = load("restart_on_change")


def deployment(name, secret, **labels):
    source = EnvFromSource(secret_ref=SecretEnvSource(name=secret))
    container = Container(name="web", image="nginx:1.27", env_from=[source])
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": name}), spec=PodSpec(containers=[container]))
    spec = DeploymentSpec(replicas=0, selector=LabelSelector(match_labels={"app": name}), template=template)
    return Deployment(metadata=ObjectMeta(name=name, labels=labels or None), spec=spec)


def digest_of(found):
    return (found.spec.template.metadata.annotations or {}).get(example.SECRETS)


async def test_a_changed_secret_restarts_the_deployments_that_read_it(client, namespace):
    for name in ("web", "other"):
        await client.create(Secret(metadata=ObjectMeta(name=name), string_data={"token": "abc"}))
    await client.create(deployment("web", "web", **{example.ON_CHANGE: "true"}))
    await client.create(deployment("unlabeled", "web"))
    async with running(client, example, only={Deployment: KindOptions(namespaces=(namespace,))}) as operator:
        first = digest_of(await seen(client, Deployment, "web", digest_of))
        await client.patch(Secret, "other", MergePatch({"stringData": {"token": "xyz"}}))
        await client.patch(Secret, "web", MergePatch({"stringData": {"token": "xyz"}}))
        await seen(client, Deployment, "web", lambda found: digest_of(found) != first)
        secrets = next(each for each in operator.manager.statistics(keys=0).informers if each.kind == "v1 Secret")
        assert (secrets.objects, secrets.referenced) == (1, 1)
        assert digest_of(await client.get(Deployment, "unlabeled")) is None
