"""What is said beside and around objects: YAML, warnings, rows, kinds that two groups share, dry runs."""

import pytest
import yaml

from samples.embedded import TABLE, Raw
from samples.site import Site
from steersman.apiserver import ApiServer
from steersman.apiserver.answers import WARNING_MAX, WARNINGS_MAX, shortened

NAMESPACE = "/api/v1/namespaces/default"
MAPS = f"{NAMESPACE}/configmaps"
PODS = f"{NAMESPACE}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
YAML = "application/yaml"
STRATEGIC = "application/strategic-merge-patch+json"
PODS_OF_IT = {"containers": [{"name": "main", "image": "i"}]}


@pytest.fixture
async def server():
    async with ApiServer() as server:
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


def a_deployment(name="a", **pod):
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": PODS_OF_IT | pod}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def an_event(name="a"):
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "Started",
        "message": "it started",
        "count": 3,
        "type": "Normal",
    }


# YAML


async def test_objects_lists_and_refusals_are_yaml_on_request(raw):
    made = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"yes": "no", "number": "1"}})
    one, many = await raw.get(f"{MAPS}/a", accept=YAML), await raw.get(MAPS, accept=YAML)
    none = await raw.get(f"{MAPS}/b", accept=YAML)
    assert {answer.headers["Content-Type"] for answer in (one, many, none)} == {YAML}
    assert yaml.safe_load(one.text) == made.body
    assert [item["metadata"]["name"] for item in yaml.safe_load(many.text)["items"]] == ["a"]
    assert (none.code, yaml.safe_load(none.text)["reason"]) == (404, "NotFound")


async def test_what_is_preferred_to_yaml_is_answered_instead(raw):
    await raw.post(MAPS, {"metadata": {"name": "a"}})
    answer = await raw.get(f"{MAPS}/a", accept=f"application/json,{YAML}")
    assert (answer.headers["Content-Type"], answer.body["kind"]) == ("application/json", "ConfigMap")


async def test_no_watch_is_yaml(raw):
    assert (await raw.get(f"{MAPS}?watch=true", accept=YAML)).code == 406


# warnings


def test_few_warnings_stay_whole_and_many_are_cut():
    assert shortened(["x" * WARNINGS_MAX]) == ["x" * WARNINGS_MAX]
    long = [f"{number:02}" + "x" * 998 for number in range(40)]
    told = shortened(long)
    assert [text[:2] for text in told] == [f"{number:02}" for number in range(WARNINGS_MAX // WARNING_MAX)]
    assert {len(text) for text in told} == {WARNING_MAX}


@pytest.mark.parametrize(
    ("target", "body", "words"),
    [
        (
            PODS,
            {"metadata": {"name": "a.b"}, "spec": PODS_OF_IT},
            "a DNS label is recommended: [must not contain dots]",
        ),
        (DEPLOYMENTS, a_deployment("a.b"), "metadata.name: this is used in Pod names and hostnames"),
        (
            DEPLOYMENTS,
            a_deployment(nodeSelector={"beta.kubernetes.io/os": "linux"}),
            "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14",
        ),
        (
            f"{NAMESPACE}/services",
            {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "externalName": "example.com"}},
            "spec.externalName is ignored",
        ),
    ],
)
async def test_what_is_odd_is_said_and_done(raw, target, body, words):
    made = await raw.post(target, body)
    assert made.code == 201
    assert words in made.headers["Warning"]


async def test_a_profile_of_an_annotation_becomes_a_field(raw):
    key = "container.apparmor.security.beta.kubernetes.io/main"
    made = await raw.post(PODS, {"metadata": {"name": "a", "annotations": {key: "localhost/mine"}}, "spec": PODS_OF_IT})
    assert "appArmorProfile" in made.headers["Warning"]
    assert made.body["spec"]["containers"][0]["securityContext"] == {
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"}
    }


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", STRATEGIC])
async def test_a_field_twice_in_a_patch_is_a_warning_or_an_error(raw, content_type):
    await raw.post(MAPS, {"metadata": {"name": "a"}})
    twice = b'{"data":{"c":"1","c":"2"}}'
    refused = await raw.patch(f"{MAPS}/a?fieldValidation=Strict", twice, content_type=content_type)
    assert refused.code == 422
    assert 'strict decoding error: duplicate field "data.c"' in refused.body["message"]
    taken = await raw.patch(f"{MAPS}/a", twice, content_type=content_type)
    assert taken.headers["Warning"] == '299 - "duplicate field \\"data.c\\""'
    assert taken.body["data"] == {"c": "2"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": "three"}, "unrecognized type: int32"),
        ({"template": []}, "cannot restore struct from: slice"),
        ({"template": {"spec": {"containers": {"name": "main"}}}}, "cannot restore slice from map"),
        ({"selector": {"matchLabels": "all"}}, "cannot restore map from string"),
    ],
)
async def test_a_strategic_patch_of_another_type_is_refused_in_its_own_words(raw, spec, words):
    await raw.post(DEPLOYMENTS, a_deployment())
    refused = await raw.patch(f"{DEPLOYMENTS}/a", {"spec": spec}, content_type=STRATEGIC)
    assert refused.code == 422
    assert refused.body["message"].endswith(words)


# rows


async def test_the_row_of_a_pod_that_has_ended_says_so(raw):
    await raw.post(PODS, {"metadata": {"name": "a"}, "spec": PODS_OF_IT})
    assert "conditions" not in (await raw.get(f"{PODS}/a", accept=TABLE)).body["rows"][0]
    await raw.patch(f"{PODS}/a/status", {"status": {"phase": "Failed"}})
    (condition,) = (await raw.get(f"{PODS}/a", accept=TABLE)).body["rows"][0]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Completed", "True", "Failed")


# one kind in two groups


async def test_an_event_is_one_object_with_two_faces(raw):
    old, new = f"{NAMESPACE}/events", "/apis/events.k8s.io/v1/namespaces/default/events"
    made = await raw.post(old, an_event())
    seen = (await raw.get(f"{new}/a")).body
    assert (seen["apiVersion"], seen["note"], seen["deprecatedCount"]) == ("events.k8s.io/v1", "it started", 3)
    assert seen["regarding"] == made.body["involvedObject"]
    assert seen["metadata"] == made.body["metadata"]
    assert not {"message", "involvedObject", "count"} & set(seen)
    labeled = await raw.patch(f"{new}/a", {"metadata": {"labels": {"own": "yes"}}})
    assert labeled.body["note"] == "it started"
    assert (await raw.get(f"{old}/a")).body["message"] == "it started"
    assert (await raw.get(f"{new}?fieldSelector=regarding.name=web")).body["items"][0]["note"] == "it started"
    refused = await raw.patch(f"{new}/a", {"note": "other"})
    assert refused.body["message"].startswith('Event "a" is invalid: message: Invalid value: "other"')


# what is filled in and given out


async def test_a_node_is_made_with_its_status_and_a_pod_is_not(raw):
    node = await raw.post("/api/v1/nodes", {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "2"}}})
    assert node.body["status"]["capacity"] == node.body["status"]["allocatable"] == {"cpu": "2"}
    pod = await raw.post(PODS, {"metadata": {"name": "a"}, "spec": PODS_OF_IT, "status": {"phase": "Running"}})
    assert pod.body["status"]["phase"] == "Pending"


async def test_a_job_is_not_refused_for_labels_that_it_was_given_itself(raw):
    job = {"spec": {"template": {"spec": PODS_OF_IT | {"restartPolicy": "Never"}}}}
    refused = await raw.post(JOBS, {"metadata": {"name": "x" * 64}} | job)
    assert {field for field, _ in refused.causes} == {"spec.template.labels"}
    made = await raw.post(JOBS, {"metadata": {"name": "a"}} | job)
    assert made.body["metadata"]["labels"] == made.body["spec"]["template"]["metadata"]["labels"]
    first, second = await raw.patch(f"{JOBS}/a", {}), await raw.patch(f"{JOBS}/a", {})
    assert made.version < first.version == second.version


async def test_a_tried_service_takes_no_address(raw):
    service = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    tried = [(await raw.post(f"{NAMESPACE}/services?dryRun=All", service)).body["spec"] for _ in range(2)]
    assert tried[0] == tried[1]
    given = (await raw.post(f"{NAMESPACE}/services", service)).body["spec"]
    assert given["clusterIP"] != tried[0]["clusterIP"]


async def test_what_is_of_another_kind_is_read_as_that_first(raw):
    await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"key": "value"}})
    refused = await raw.patch(f"{MAPS}/a", {"kind": "Secret"})
    assert refused.code == 422
    assert refused.body["message"].endswith("illegal base64 data at input byte 4")


@pytest.mark.parametrize(
    "patch", [{"kind": "Gadget"}, {"apiVersion": "web.test.steersman.dev/v7"}, {"kind": None}, {"apiVersion": 7}]
)
@pytest.mark.parametrize("kind", ["ConfigMap", "Site"])
async def test_a_patch_makes_no_object_of_another_kind(kind, patch):
    async with ApiServer(resources=[Site]) as server:
        raw = Raw(server.handler)
        target = MAPS if kind == "ConfigMap" else "/apis/web.test.steersman.dev/v1/namespaces/default/sites"
        body = {"metadata": {"name": "a"}} | (
            {"spec": {"image": "i"}, "kind": "Site", "apiVersion": "web.test.steersman.dev/v1"}
            if kind == "Site"
            else {}
        )
        made = await raw.post(target, body)
        assert made.code == 201, made.body
        patched = await raw.patch(f"{target}/a", patch)
        assert patched.code in ({200, 422} if patch == {"kind": None} else {400, 422}), patched.body
        assert (await raw.get(f"{target}/a")).body == made.body


async def test_the_count_of_a_daemonsets_templates_is_no_metadata(raw):
    sets = "/apis/apps/v1/namespaces/default/daemonsets"
    made = await raw.post(sets, a_deployment())
    assert made.body["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "1"}
    partial = await raw.get(f"{sets}/a", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert "annotations" not in partial.body["metadata"]
    told = {key: value for key, value in made.body["metadata"].items() if key != "annotations"}
    status = await raw.put(f"{sets}/a/status", made.body | {"metadata": told})
    assert status.body["metadata"]["annotations"] == made.body["metadata"]["annotations"]
