"""Options that a query has more than once: what authorizes a request is what answers it."""

from __future__ import annotations

from conformance.bodies import CM, ROLE, ROLE_BINDING, SECRET, configmap, named, secret
from conformance.scenario import Call, Step, Until, get, post, scenario

V1, GROUP = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
AS_USER = (("Impersonate-User", "{u}"),)
MINE = "metadata.name=mine"

USER: list[Step] = [
    post(SECRET, secret("mine")),
    post(SECRET, secret("other")),
    post(ROLE, named(V1, "Role", "a", rules=[{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine", "none", "a/b"], "verbs": ["get", "list", "watch", "delete"]}])),
    post(ROLE_BINDING, named(V1, "RoleBinding", "a", roleRef={"apiGroup": GROUP, "kind": "Role", "name": "a"}, subjects=[{"kind": "User", "apiGroup": GROUP, "name": "{u}"}])),
    Until(get(f"{SECRET}/mine", headers=AS_USER), 200),
]  # fmt: skip


def names(tree):
    """The names of a list, or what a refusal says."""
    return [each["metadata"]["name"] for each in tree["items"]] if "items" in tree else tree


def asked(*query: tuple[str, str], path: str = SECRET, method: str = "GET") -> Call:
    """A request of the user, with its query as it is."""
    return Call(method, path, query, AS_USER, focus=names)


QUERIES = [
    (("fieldSelector", MINE),),
    (("fieldSelector", ""), ("fieldSelector", MINE)),
    (("fieldSelector", MINE), ("fieldSelector", "")),
    (("fieldSelector", MINE), ("fieldSelector", "metadata.name=other")),
    (("fieldSelector", "metadata.name=other"), ("fieldSelector", MINE)),
    (("fieldSelector", "metadata.namespace={ns}"), ("fieldSelector", MINE)),
    (("fieldSelector", f"metadata.namespace={{ns}},{MINE}"),),
    (("fieldSelector", f"{MINE},metadata.name=other"),),
    (("fieldSelector", f"metadata.name=other,{MINE}"),),
    (("fieldSelector", f"metadata.name!=other,{MINE}"),),
    (("fieldSelector", "metadata.name==mine"),),
    (("fieldSelector", "metadata.name!=mine"),),
    (("fieldSelector", "metadata.name="),),
    (("fieldSelector", "metadata.name=a/b"),),
    (("fieldSelector", "metadata.name=mi\\ne"),),
    (("fieldSelector", "metadata.name=mine\\,x"),),
    (("fieldSelector", " metadata.name=mine"),),
    (("fieldSelector", "metadata.name=mine,"),),
    (("fieldSelector", MINE), ("limit", "abc")),
    (("fieldSelector", MINE), ("limit", "")),
    (("fieldSelector", MINE), ("limit", "1"), ("limit", "abc")),
    (("fieldSelector", MINE), ("timeoutSeconds", "x")),
    (("fieldSelector", MINE), ("labelSelector", "a=b,,")),
    (("fieldSelector", MINE), ("labelSelector", ""), ("labelSelector", "a=b,,")),
    (("fieldSelector", MINE), ("resourceVersion", "x")),
    (("FieldSelector", MINE),),
    (("fieldSelector", MINE), ("watch", "false"), ("watch", "true")),
    (("fieldSelector", MINE), ("watch", "0"), ("watch", "1")),
    (("watch", "true"), ("watch", "false")),
    (("watch", ""), ("fieldSelector", "")),
    (("watch", "1"), ("limit", "abc"), ("fieldSelector", MINE)),
    (("watch", "1"), ("fieldSelector", ""), ("fieldSelector", MINE)),
]

SCENARIOS = [
    scenario("names", "Selectors, Status errors", USER, [asked(*query) for query in QUERIES]),
    scenario(
        "names-of-watch-paths",
        "Selectors, Status errors",
        USER,
        [asked(*query, path="/api/v1/watch/namespaces/{ns}/secrets/mine") for query in ((("fieldSelector", "metadata.name=other"),), (("fieldSelector", ""), ("fieldSelector", "metadata.name=other"), ("timeoutSeconds", "x")))],
        [asked(*query, path="/api/v1/watch/namespaces/{ns}/secrets") for query in ((("fieldSelector", "metadata.name=other"),), (("fieldSelector", ""), ("fieldSelector", MINE)))],
        asked(path="/api/v1/watch/namespaces/{ns}/secrets/other"),
    ),
    scenario(
        "deletions",
        "Selectors, Status errors, deletecollection",
        USER,
        [asked(*query, method="DELETE") for query in ((), (("fieldSelector", MINE),), (("fieldSelector", ""), ("fieldSelector", MINE)))],
        get(SECRET, focus=names),
    ),
    scenario(
        "writes",
        "dryRun, fieldValidation, Status errors",
        [
            Call("POST", CM, query, (("Content-Type", "application/json"),), configmap(f"a{index}") | {"color": "red"})
            for index, query in enumerate((
                (("dryRun", "All"), ("dryRun", "All")), (("dryRun", "All"), ("dryRun", "")), (("dryRun", ""), ("dryRun", "All")), (("dryRun", "x"), ("dryRun", "All")), (("dryRun", ""),),
                (("fieldValidation", "Ignore"), ("fieldValidation", "Strict")), (("fieldValidation", "Strict"), ("fieldValidation", "Ignore")), (("fieldValidation", ""), ("fieldValidation", "Strict")),
                (("fieldManager", "a"), ("fieldManager", "b")), (("fieldManager", ""), ("fieldManager", "b")),
            ))
        ],
        get(CM, focus=names),
        [Call("DELETE", f"{CM}/a5", query) for query in ((("dryRun", "All"), ("dryRun", "x")), (("dryRun", "All"), ("gracePeriodSeconds", ""), ("gracePeriodSeconds", "x")), (("gracePeriodSeconds", "x"), ("gracePeriodSeconds", "1")), (("propagationPolicy", ""), ("propagationPolicy", "Orphan")), (("propagationPolicy", "Orphan"), ("propagationPolicy", "x"), ("dryRun", "All")))],
        [Call("GET", f"{CM}/a5", query) for query in ((("resourceVersion", "0"), ("resourceVersion", "x")), (("resourceVersion", "x"), ("resourceVersion", "0")), (("watch", "1"),))],
    ),
]  # fmt: skip
