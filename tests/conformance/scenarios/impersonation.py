"""Impersonation: whom headers name, malformed and repeated ones too."""

from __future__ import annotations

from typing import Any

from conformance.scenario import Call, post, scenario

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
ACCOUNT, NODE = "system:serviceaccount:", "system:node:"
BOB = ("User", "bob")


def acting(tree: Any) -> Any:
    """The user that a request acts as, or what a refusal says; the administrators of the servers have other names."""
    user = tree.get("status", {}).get("userInfo") if tree["kind"] == "SelfSubjectReview" else None
    if user is None:
        return tree
    return "the administrator" if "system:masters" in user["groups"] else user


def reviewed(*headers: tuple[str, str]) -> Call:
    """Who asks, with these headers."""
    return post(REVIEWS, REVIEW, headers=tuple((f"Impersonate-{name}", value) for name, value in headers), focus=acting)


SCENARIOS = [
    scenario(
        "malformed-accounts-and-nodes",
        "Status errors",
        [reviewed(("User", f"{ACCOUNT}{name}")) for name in ("default:x", "Default:x", "default:X", "default:x.y", "a.b:x", "default:x:y", "default:", ":x", ":", "", f"{'n' * 64}:x")],
        [reviewed(("User", f"{ACCOUNT}{name}"), ("Group", "g")) for name in ("default:x", "Default:x")],
        [reviewed(("User", f"{NODE}{name}")) for name in ("n", "", "N")],
    ),
    scenario(
        "anonymous",
        "Status errors",
        reviewed(("User", "system:anonymous")),
        [reviewed(("User", "system:anonymous"), ("Group", group)) for group in ("system:authenticated", "system:unauthenticated", "g")],
        reviewed(("User", "system:anonymous"), ("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
        [reviewed(BOB, ("Group", group)) for group in ("system:authenticated", "system:unauthenticated", "g")],
    ),
    scenario(
        "empty-and-repeated-headers",
        "Status errors",
        reviewed(("User", "")),
        reviewed(("User", ""), BOB),
        reviewed(BOB, ("User", "")),
        reviewed(BOB, ("User", "eve")),
        reviewed(("User", ""), ("Group", "g")),
        reviewed(BOB, ("Group", "")),
        reviewed(BOB, ("Group", ""), ("Group", "g"), ("Group", "g")),
        reviewed(("Group", "")),
        reviewed(BOB, ("Uid", ""), ("Uid", "7")),
        reviewed(BOB, ("Uid", "7"), ("Uid", "8")),
        reviewed(("Uid", ""), ("Uid", "7")),
        reviewed(BOB, ("Extra-a", "")),
        reviewed(("Extra-a", "")),
        # not beside Extra-%61: kube-apiserver reads different headers of one key in the order of a Go map
        reviewed(BOB, ("Extra-a", "x"), ("Extra-A", "y")),
        reviewed(BOB, ("Extra-%61", "z")),
        [reviewed(BOB, (f"Extra-{key}", "x")) for key in ("", "%zz", "a%0ab%22", "a%41", "A%2FB")],
        reviewed(("Else", "x")),
        reviewed(BOB, ("Else", "x")),
    ),
]  # fmt: skip
