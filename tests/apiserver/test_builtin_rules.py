"""Rules of built-in kinds that need no engine: the form of types, addresses of Services, ages in tables."""

import asyncio
from datetime import timedelta
from ipaddress import ip_address, ip_network

import pytest

from samples.embedded import TABLE, Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.registry.ages import human
from steersman.apiserver.registry.builtin.event import to_core, to_events
from steersman.apiserver.registry.builtin.types.canonical_form import canonical
from steersman.apiserver.registry.builtin.workloads.cron_schedule import schedule_problem
from steersman.apiserver.registry.kind_rules import is_validated, strategy_of
from steersman.kinds import all_group_versions, resources_of
from steersman.objects import GroupVersionKind

SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture
async def raw():
    async with ApiServer(kinds=["v1"]) as server:
        yield Raw(server.handler)


def service(name, **spec):
    ports = {"ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": ports | spec}


def test_a_type_writes_what_it_always_writes_and_nothing_that_is_zero():
    given = {"containers": [{"name": "c", "stdin": False, "args": []}], "hostNetwork": False, "nodeName": "", "odd": 1}
    assert canonical(given, "core.v1.PodSpec") == {"containers": [{"name": "c", "resources": {}}]}
    assert canonical({}, "core.v1.PodSpec") == {"containers": None}


def test_a_pointer_keeps_its_zero():
    given = {"terminationGracePeriodSeconds": 0, "enableServiceLinks": False}
    assert canonical(given, "core.v1.PodSpec") == {"containers": None} | given


def test_quantities_times_and_fields_are_written_as_the_server_writes_them():
    assert canonical({"limits": {"cpu": "1000m", "memory": "0.1"}}, "core.v1.ResourceRequirements") == {
        "limits": {"cpu": "1", "memory": "100m"}
    }
    meta = canonical({"creationTimestamp": "2024-01-01T02:00:00+02:00", "name": "x"}, "meta.v1.ObjectMeta")
    assert list(meta) == ["name", "creationTimestamp"]
    assert meta["creationTimestamp"] == "2024-01-01T00:00:00Z"


def test_an_event_survives_the_way_to_the_other_group_and_back():
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "n"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "r",
        "message": "m",
        "source": {"component": "c"},
        "firstTimestamp": "2024-01-01T00:00:00Z",
        "lastTimestamp": "2024-01-02T00:00:00Z",
        "count": 3,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    there = to_events(event)
    assert (there["note"], there["regarding"]["name"], there["deprecatedCount"]) == ("m", "p", 3)
    assert to_core(there) == event


async def test_services_created_at_once_get_addresses_of_their_own(raw):
    answers = await asyncio.gather(
        *(raw.post(SERVICES, service(f"s{number}", type="NodePort")) for number in range(60))
    )
    specs = [answer.body["spec"] for answer in answers]
    addresses = {spec["clusterIP"] for spec in specs}
    assert len(addresses) == 60
    assert all(ip_address(address) in ip_network("10.0.0.0/24") for address in addresses)
    assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 60


async def test_an_address_is_free_again_when_its_service_is_gone_or_never_came(raw):
    made = await raw.post(SERVICES, service("first", clusterIP="10.0.0.50"))
    assert made.body["spec"]["clusterIPs"] == ["10.0.0.50"]
    taken = await raw.post(SERVICES, service("second", clusterIP="10.0.0.50"))
    assert taken.code == 422
    assert "provided IP is already allocated" in taken.body["message"]
    assert (await raw.post(SERVICES, service("first", clusterIP="10.0.0.51"))).code == 409
    assert (await raw.post(SERVICES, service("other", clusterIP="10.0.0.51"))).code == 201
    await raw.send("DELETE", f"{SERVICES}/first")
    assert (await raw.post(SERVICES, service("second", clusterIP="10.0.0.50"))).code == 201


async def test_a_trial_takes_no_address(raw):
    for _ in range(2):
        tried = await raw.post(f"{SERVICES}?dryRun=All", service("x", clusterIP="10.0.0.60"))
        assert tried.code == 201
    assert (await raw.post(SERVICES, service("y", clusterIP="10.0.0.60"))).code == 201


async def test_a_node_port_beyond_the_range_is_refused(raw):
    refused = await raw.post(SERVICES, service("x", type="NodePort", ports=[{"port": 80, "nodePort": 80}]))
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["message"] == (
        "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
    )


async def test_a_table_of_services_shows_ports(raw):
    await raw.post(SERVICES, service("web", clusterIP="10.0.0.70"))
    table = (await raw.get(f"{SERVICES}/web", accept=TABLE)).body
    assert table["rows"][0]["cells"][:5] == ["web", "ClusterIP", "10.0.0.70", "<none>", "80/TCP"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (30 * 3600, "30h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_an_age_is_said_in_few_signs(seconds, said):
    assert human(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize("schedule", ["* * * * *", "*/5 0-6 1,2 jan MON", "@hourly", "@every 1h30m"])
def test_a_schedule_that_can_be_read_has_no_problem(schedule):
    assert schedule_problem(schedule) == ""


def test_every_kind_that_can_be_stored_has_a_strategy():
    for group_version in all_group_versions():
        for resource in resources_of(group_version):
            if "/" not in resource["name"] and "list" in resource["verbs"]:
                kind = GroupVersionKind(group_version.group, group_version.version, resource["kind"])
                assert strategy_of(kind) is not None, kind
    assert not is_validated(GroupVersionKind("resource.k8s.io", "v1", "DeviceClass"))
    assert is_validated(GroupVersionKind("", "v1", "Pod"))


@pytest.mark.parametrize(
    ("container", "warning"),
    [
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"ports": [{"containerPort": 80}, {"containerPort": 80}]},
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        (
            {"resources": {"limits": {"memory": "1.5"}, "requests": {"memory": "1"}}},
            'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
        ),
    ],
)
async def test_the_writer_of_an_odd_container_gets_a_warning(raw, container, warning):
    pod = {"containers": [{"name": "c", "image": "x"} | container]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    answer = await raw.post("/api/v1/namespaces/default/pods", body)
    assert answer.code == 201
    assert warning in answer.headers["Warning"].replace('\\"', '"')


@pytest.mark.parametrize("name", ["metrics", "behavior", "conditions", "current-metrics"])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        '[{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"x"}}]',
        '[{"type":"Pods","pods":{"metricName":5,"targetAverageValue":{}}}]',
        '[{"type":5}]',
        '{"ScaleUp":{"Policies":[{"Type":"Pods","Value":"x"}]}}',
        '{"ScaleUp":{"StabilizationWindowSeconds":"x"}}',
    ],
)
async def test_an_annotation_of_other_types_stands_for_no_field(name, text):
    """Annotations of autoscaling/v1 have the fields of v2; clients write them without any check."""
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    metadata = {"name": "a", "annotations": {f"autoscaling.alpha.kubernetes.io/{name}": text}}
    made = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
    async with ApiServer(kinds=["autoscaling/v1", "autoscaling/v2"]) as server:
        raw = Raw(server.handler)
        answer = await raw.post(path.format("v1"), made | {"spec": {"maxReplicas": 3, "scaleTargetRef": target}})
        assert answer.code == 201
        (found,) = (await raw.get(path.format("v2"))).body["items"]
        assert [metric["resource"]["name"] for metric in found["spec"]["metrics"]] == ["cpu"]
        assert "behavior" not in found["spec"]
