"""Kinds that are questions: answered at once, also by a server that was told nothing about users, and never stored."""

import pytest

from samples.embedded import Raw
from steersman.apiserver import ApiServer

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io/v1", "authentication.k8s.io/v1"
WISH = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}


@pytest.mark.parametrize(
    ("path", "body", "answered"),
    [
        (
            f"/apis/{AUTHORIZATION}/selfsubjectaccessreviews",
            {"apiVersion": AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": WISH},
            {"allowed": True},
        ),
        (
            f"/apis/{AUTHORIZATION}/subjectaccessreviews",
            {"apiVersion": AUTHORIZATION, "kind": "SubjectAccessReview", "spec": WISH | {"user": "jane"}},
            {"allowed": True},
        ),
        (
            f"/apis/{AUTHENTICATION}/tokenreviews",
            {"apiVersion": AUTHENTICATION, "kind": "TokenReview", "spec": {"token": "nobody's"}},
            {"user": {}, "error": "invalid bearer token"},
        ),
    ],
    ids=["self", "subject", "token"],
)
async def test_a_review_is_answered_and_never_stored(path, body, answered):
    async with ApiServer() as server:
        before = await server.storage.revision()
        answer = await Raw(server.handler).post(path, body)
        assert (answer.code, answer.body["status"]) == (201, answered)
        assert await server.storage.revision() == before


async def test_kinds_that_were_not_chosen_are_not_served_for_their_reviews():
    async with ApiServer(kinds=["v1"]) as server:
        raw = Raw(server.handler)
        assert (await raw.post(f"/apis/{AUTHENTICATION}/tokenreviews", {})).code == 404
        assert b"authentication.k8s.io" not in (await raw.get("/apis")).text
