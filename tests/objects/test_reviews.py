"""Reviews: what goes to a webhook and comes back is what kube-apiserver and Go webhooks write."""

import msgspec

from steersman.objects import (
    JSON_PATCH_TYPE,
    AdmissionRequest,
    AdmissionResponse,
    AdmissionReview,
    ConversionReview,
    GroupVersionKind,
    GroupVersionResource,
    UserInfo,
)

SITE = b'{"kind":"Site","spec":{"b":1,"a":2.50}}'


def test_a_request_has_the_members_of_kube_apiserver():
    """A webhook in Go reads `object: null` of a deletion, and `dryRun: false`."""
    request = AdmissionRequest(
        uid="1",
        kind=GroupVersionKind("web.example.com", "v1", "Site"),
        resource=GroupVersionResource("web.example.com", "v1", "sites"),
        operation="DELETE",
        user_info=UserInfo(username="ada", groups=("g",)),
        old_object=msgspec.Raw(SITE),
    )
    written = msgspec.json.encode(AdmissionReview(request=request))
    assert written == (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",'
        b'"kind":{"group":"web.example.com","version":"v1","kind":"Site"},'
        b'"resource":{"group":"web.example.com","version":"v1","resource":"sites"},"operation":"DELETE",'
        b'"userInfo":{"username":"ada","groups":["g"]},"object":null,"oldObject":' + SITE + b',"dryRun":false,'
        b'"options":null}}'
    )


def test_an_object_keeps_its_bytes():
    """A number such as 2.50 and the order of members survive the review."""
    body = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","unknown":{},'
        b'"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},'
        b'"operation":"CREATE","userInfo":{},"object":' + SITE + b',"oldObject":null,"options":null}}'
    )
    request = msgspec.json.decode(body, type=AdmissionReview).request
    assert request is not None
    assert bytes(request.object) == SITE
    assert bytes(request.old_object) == b"null"


def test_a_patch_is_base64_on_the_wire_only():
    written = msgspec.json.encode(AdmissionResponse(uid="1", allowed=True, patch=b"[]", patch_type=JSON_PATCH_TYPE))
    assert written == b'{"uid":"1","allowed":true,"patch":"W10=","patchType":"JSONPatch"}'
    assert msgspec.json.decode(written, type=AdmissionResponse).patch == b"[]"


def test_nulls_of_a_response_are_absent():
    """Go writes nil slices and maps as null unless a webhook's author tagged them otherwise."""
    text = b'{"uid":"1","allowed":false,"status":null,"patch":null,"patchType":null,"auditAnnotations":null,"warnings":null}'
    assert msgspec.json.decode(text, type=AdmissionResponse) == AdmissionResponse(uid="1", allowed=False)


def test_a_conversion_review_as_go_writes_it():
    text = (
        b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"7","convertedObjects":['
        + SITE
        + b'],"result":{"metadata":{},"status":"Success"}}}'
    )
    response = msgspec.json.decode(text, type=ConversionReview).response
    assert response is not None
    assert response.result.status == "Success"
    assert [bytes(each) for each in response.converted_objects or ()] == [SITE]
