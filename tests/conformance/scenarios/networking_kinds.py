"""Ingresses, network policies, endpoints and addresses: defaults, refusals, changes."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CORE, Tree, merged, named
from conformance.trials import Changes, Trials, change_scenarios, status_scenarios, trial_scenarios

NETWORKING = "/apis/networking.k8s.io/v1"
INGRESS = f"{NETWORKING}/namespaces/{{ns}}/ingresses"
INGRESS_CLASS = f"{NETWORKING}/ingressclasses"
POLICY = f"{NETWORKING}/namespaces/{{ns}}/networkpolicies"
CIDR = f"{NETWORKING}/servicecidrs"
ADDRESS = f"{NETWORKING}/ipaddresses"
ENDPOINTS = f"{CORE}/endpoints"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
LONG = "x" * 64


def backend(name: Any = "web", /, **port: Any) -> Tree:
    return {"service": {"name": name, "port": port or {"number": 80}}}


def path(value: str = "/", type_: str | None = "Prefix", **fields: Any) -> Tree:
    one = {"path": value, "backend": backend(), **fields}
    return one if type_ is None else one | {"pathType": type_}


def rule(*paths: Tree, **fields: Any) -> Tree:
    return {"http": {"paths": list(paths)}, **fields}


def ingress(**spec: Any) -> Tree:
    return named("networking.k8s.io/v1", "Ingress", "a", spec=spec)


def ingress_class(**spec: Any) -> Tree:
    return named("networking.k8s.io/v1", "IngressClass", "{free}", spec=merged({"controller": "example.com/c"}, spec))


def policy(**spec: Any) -> Tree:
    return named("networking.k8s.io/v1", "NetworkPolicy", "a", spec=merged({"podSelector": {}}, spec))


def ports(*given: Tree) -> Tree:
    return policy(ingress=[{"ports": list(given)}], egress=[{"ports": list(given[:1])}])


def peers(*given: Tree) -> Tree:
    return policy(ingress=[{"from": list(given)}])


def block(cidr: Any, *excepted: str) -> Tree:
    return {"ipBlock": {"cidr": cidr, **({"except": list(excepted)} if excepted else {})}}


def subsets(*given: Tree) -> Tree:
    return named("v1", "Endpoints", "a", subsets=list(given))


def addresses(*given: Tree, **fields: Any) -> Tree:
    return {"addresses": list(given), "ports": [{"port": 80}], **fields}


def endpoint_slice(*endpoints: Tree, type_: str = "IPv4", **fields: Any) -> Tree:
    body = named("discovery.k8s.io/v1", "EndpointSlice", "a", addressType=type_, endpoints=list(endpoints))
    return merged(body, {"ports": [{"port": 80}], **fields})


def ip(*given: str, **fields: Any) -> Tree:
    return {"addresses": list(given), **fields}


def service_cidr(*cidrs: str) -> Tree:
    return named("networking.k8s.io/v1", "ServiceCIDR", "{free}", spec={"cidrs": list(cidrs)})


def address(name: str = "192.0.2.7", **parent: Any) -> Tree:
    parent = {"group": "", "resource": "services", "namespace": "default", "name": "x"} | parent
    return named("networking.k8s.io/v1", "IPAddress", name, spec={"parentRef": parent})


TRIALS: Trials = {
    "ingress-shapes": (
        INGRESS,
        [
            ingress(),
            ingress(rules=[]),
            ingress(defaultBackend=backend()),
            ingress(rules=[{}]),
            ingress(rules=[{"http": {"paths": []}}]),
            ingress(rules=[rule(path())], defaultBackend={}),
            named("networking.k8s.io/v1", "Ingress", "a"),
        ],
    ),
    "ingress-hosts": (
        INGRESS,
        [
            ingress(rules=[rule(path(), host=host)])
            for host in (
                "a.example.com",
                "*.example.com",
                "*",
                "a.*.com",
                "10.0.0.1",
                "A.b",
                "-a",
                "2001:db8::1",
                "a b",
                "x" * 254,
            )
        ],
    ),
    "ingress-paths": (
        INGRESS,
        [
            ingress(rules=[rule(path(value, type_))])
            for value in ("/", "", "a", "/a//b", "/a/../b", "/a/./b", "/a%2fb", "/a/..", "/a/.", "/%2F/..")
            for type_ in ("Exact", "ImplementationSpecific")
        ],
    ),
    "ingress-path-types": (
        INGRESS,
        [ingress(rules=[rule(path("/", type_))]) for type_ in (None, "", "Regex", "Prefix", "prefix")],
    ),
    "ingress-service-backends": (
        INGRESS,
        [
            ingress(defaultBackend=one)
            for one in (
                backend(""),
                backend("A.b"),
                backend("0a"),
                backend(LONG),
                backend("web", name="http"),
                backend("web", name="no port"),
                backend("web", number=0),
                backend("web", number=65536),
                backend("web", name="http", number=80),
                {"service": {"name": "web"}},
                {"service": {}},
            )
        ],
    ),
    "ingress-resource-backends": (
        INGRESS,
        [
            ingress(defaultBackend={"resource": one})
            for one in (
                {"kind": "Bucket", "name": "b"},
                {"apiGroup": "example.com", "kind": "Bucket", "name": "b"},
                {"apiGroup": "Example", "kind": "a/b", "name": "a%b"},
                {},
                {"kind": "..", "name": "."},
            )
        ]
        + [ingress(defaultBackend={"resource": {"kind": "Bucket", "name": "b"}} | backend())],
    ),
    "ingress-tls": (
        INGRESS,
        [
            ingress(defaultBackend=backend(), tls=[one])
            for one in (
                {},
                {"hosts": ["a.b", "*.b"], "secretName": "s"},
                {"hosts": ["A", "*", "a..b"], "secretName": "Not A Name"},
                {"secretName": ""},
            )
        ],
    ),
    "ingress-classes-of-ingresses": (
        INGRESS,
        [
            merged(ingress(defaultBackend=backend(), **spec), {"metadata": {"annotations": annotations}})
            for annotations in ({}, {"kubernetes.io/ingress.class": "a"})
            for spec in ({}, {"ingressClassName": "a"}, {"ingressClassName": "b"}, {"ingressClassName": "A b"})
        ],
    ),
    "ingresses-with-many-problems": (
        INGRESS,
        [
            ingress(
                rules=[rule(path("a", "Exact", backend={}), path("/", "x"), host="*"), rule(host="A")],
                tls=[{"hosts": ["?"], "secretName": "?"}],
                ingressClassName="?",
                defaultBackend=backend("", name="?"),
            )
        ],
    ),
    "ingress-class-controllers": (
        INGRESS_CLASS,
        [
            ingress_class(controller=text)
            for text in (
                "",
                "c",
                "/c",
                "example.com/",
                "Example.com/c",
                "example.com/a b",
                "example.com/" + "x" * 250,
                "a/b?c",
            )
        ],
    ),
    "ingress-class-parameters": (
        INGRESS_CLASS,
        [
            ingress_class(parameters=one)
            for one in (
                {},
                {"kind": "K", "name": "n"},
                {"apiGroup": "", "kind": "K", "name": "n"},
                {"apiGroup": "Example", "kind": "a/b", "name": ".."},
                {"kind": "K", "name": "n", "scope": ""},
                {"kind": "K", "name": "n", "scope": "Namespace"},
                {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "a"},
                {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "A.b"},
                {"kind": "K", "name": "n", "scope": "Cluster", "namespace": "a"},
                {"kind": "K", "name": "n", "scope": "Galaxy", "namespace": "a"},
            )
        ],
    ),
    "network-policy-defaults": (
        POLICY,
        [
            policy(),
            policy(ingress=[]),
            policy(egress=[{}]),
            policy(policyTypes=[]),
            policy(policyTypes=["Egress"]),
            named("networking.k8s.io/v1", "NetworkPolicy", "a"),
            ports({"port": 80}),
        ],
    ),
    "network-policy-types": (
        POLICY,
        [
            policy(policyTypes=types)
            for types in (
                ["Ingress", "Egress"],
                ["Ingress", "Ingress"],
                ["ingress"],
                ["a", "b"],
                ["Ingress", "Egress", "Ingress"],
                [""],
            )
        ],
    ),
    "network-policy-ports": (
        POLICY,
        [
            ports(one)
            for one in (
                {},
                {"protocol": "ICMP"},
                {"protocol": "SCTP", "port": "http"},
                {"port": 0},
                {"port": 65536},
                {"port": "no port"},
                {"port": "http", "endPort": 90},
                {"endPort": 90},
                {"port": 80, "endPort": 79},
                {"port": 80, "endPort": 65536},
                {"port": 80, "endPort": 80},
                {"port": 0, "endPort": -1, "protocol": ""},
            )
        ],
    ),
    "network-policy-peers": (
        POLICY,
        [
            peers(one)
            for one in (
                {},
                {"podSelector": {}},
                {"namespaceSelector": {"matchLabels": {"a b": "c d"}}},
                {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}, "namespaceSelector": {}},
                {"podSelector": {}} | block("10.0.0.0/8"),
                {"namespaceSelector": {}, "podSelector": {}} | block("x"),
            )
        ]
        + [policy(podSelector={"matchLabels": {"a": "?"}}), policy(egress=[{"to": [{}]}])],
    ),
    "network-policy-blocks": (
        POLICY,
        [
            peers(one)
            for one in (
                block("10.0.0.0/8"),
                block("10.0.0.0/8", "10.1.0.0/16"),
                block("10.0.0.0/8", "10.0.0.0/8", "11.0.0.0/16", "x", "2001:db8::/64"),
                block(""),
                block("x", "y"),
                block("10.0.0.1/8"),
                block("010.0.0.0/8"),
                block("10.0.0.0/33"),
                block("2001:db8::/32", "2001:db8:1::/48"),
                block("2001:DB8::/32", "2001:0db8:1::/48"),
                block("::ffff:10.0.0.0/104"),
            )
        ],
    ),
    "endpoints-subsets": (
        ENDPOINTS,
        [
            named("v1", "Endpoints", "a"),
            subsets(),
            subsets({}),
            subsets({"ports": [{"port": 80}]}),
            subsets(addresses({"ip": "10.1.2.3"})),
            subsets({"notReadyAddresses": [{"ip": "10.1.2.3"}]}),
        ],
    ),
    "endpoints-addresses": (
        ENDPOINTS,
        [
            subsets(addresses({"ip": text}))
            for text in (
                "",
                "x",
                "127.0.0.1",
                "0.0.0.0",
                "169.254.1.1",
                "224.0.0.1",
                "::1",
                "::",
                "fe80::1",
                "010.1.2.3",
                "2001:DB8::1",
            )
        ]
        + [subsets(addresses({"ip": "10.1.2.3", "hostname": "A.b", "nodeName": "A b"}))],
    ),
    "endpoints-ports": (
        ENDPOINTS,
        [
            subsets(addresses({"ip": "10.1.2.3"}, ports=given))
            for given in (
                [{"port": 0}],
                [{"port": 65536, "protocol": "ICMP"}],
                [{"port": 80}, {"port": 81}],
                [{"port": 80, "name": "A b"}],
                [{"port": 80, "appProtocol": "a b"}],
                [{"port": 80, "appProtocol": "example.com/x"}],
            )
        ],
    ),
    "slice-types": (
        SLICE,
        [endpoint_slice(type_=type_) for type_ in ("", "IPv4", "IPv6", "FQDN", "ipv4")]
        + [merged(endpoint_slice(), {"addressType": None})],
    ),
    "slice-ipv4-endpoints": (
        SLICE,
        [
            endpoint_slice(ip(text))
            for text in ("10.1.2.3", "x", "", "127.0.0.1", "2001:db8::1", "010.1.2.3", "0.0.0.0", "224.0.0.5")
        ]
        + [endpoint_slice({}), endpoint_slice(ip(*["10.1.2.3"] * 101))],
    ),
    "slice-ipv6-endpoints": (
        SLICE,
        [
            endpoint_slice(ip(text), type_="IPv6")
            for text in ("2001:db8::1", "2001:DB8::1", "10.1.2.3", "::1", "fe80::1", "::ffff:10.1.2.3", "x")
        ],
    ),
    "slice-named-endpoints": (
        SLICE,
        [
            endpoint_slice(ip(text), type_="FQDN")
            for text in ("a.example.com", "a.b.", "a", "", "A.b", "a..b", LONG + ".b")
        ],
    ),
    "slice-topology": (
        SLICE,
        [
            endpoint_slice(ip("10.1.2.3", **fields))
            for fields in (
                {"nodeName": "n", "zone": "z", "hostname": "h"},
                {"nodeName": "A b", "hostname": "a.b"},
                {"hints": {"forZones": [{"name": "a"}, {"name": "a"}, {"name": "a b"}]}},
                {"hints": {"forNodes": [{"name": "n"}, {"name": "n"}, {"name": "N"}]}},
                {"hints": {"forZones": [{"name": str(at)} for at in range(9)]}},
                {"deprecatedTopology": {"a": "b"}},
                {"conditions": {"ready": False, "serving": True}},
            )
        ],
    ),
    "slice-ports": (
        SLICE,
        [
            endpoint_slice(ip("10.1.2.3"), ports=given)
            for given in (
                [],
                None,
                [{}],
                [{"port": 0}],
                [{"name": "a", "port": 80}, {"name": "a", "port": 81}],
                [{"port": 80}, {"port": 81}],
                [{"name": "A b", "protocol": "ICMP", "appProtocol": "a b"}],
            )
        ],
    ),
    "service-cidrs": (
        CIDR,
        [
            service_cidr(),
            service_cidr("10.99.0.0/24"),
            service_cidr("10.99.0.0/24", "2001:db8:1::/112"),
            service_cidr("10.99.0.0/24", "10.98.0.0/24"),
            service_cidr("10.99.0.0/24", "10.98.0.0/24", "10.97.0.0/24"),
            service_cidr("10.99.0.1/24"),
            service_cidr("x", "y"),
            service_cidr("2001:DB8::/112"),
            named("networking.k8s.io/v1", "ServiceCIDR", "{free}"),
        ],
    ),
    "ip-addresses": (
        ADDRESS,
        [
            address(),
            address("192.0.2.007"),
            address("x"),
            address("2001:DB8::1"),
            address("2001:db8::1"),
            address(resource="", name=""),
            address(group="Example", resource="a/b", namespace="a%b", name=".."),
            named("networking.k8s.io/v1", "IPAddress", "192.0.2.7"),
            named("networking.k8s.io/v1", "IPAddress", "192.0.2.7", spec={"parentRef": {}}),
        ],
    ),
}

CHANGES: Changes = {
    "an-ingress": (
        INGRESS,
        ingress(rules=[rule(path(), host="a.b")], ingressClassName="x"),
        [
            {"spec": {"ingressClassName": "y"}},
            {"spec": {"rules": None}},
            {"spec": {"defaultBackend": backend(), "rules": None}},
            {"spec": {"tls": [{"secretName": "?"}]}},
            {"metadata": {"labels": {"a": "b c"}}},
            {"metadata": {"annotations": {"kubernetes.io/ingress.class": "other"}}},
            {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}},
        ],
    ),
    "an-ingress-class": (
        INGRESS_CLASS,
        ingress_class(),
        [
            {"spec": {"controller": "example.com/d"}},
            {"spec": {"controller": None}},
            {"spec": {"parameters": {"kind": "K", "name": "n"}}},
            {"spec": {"parameters": {"scope": "Namespace"}}},
            {"metadata": {"annotations": {"a": "b"}}},
        ],
    ),
    "a-network-policy": (
        POLICY,
        policy(ingress=[{"from": [block("10.0.0.0/8")]}]),
        [
            {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"ingress": [{"from": [block("10.0.0.1/8")]}]}},
            {"spec": {"egress": [{}]}},
            {"spec": {"policyTypes": None}},
            {"spec": {"policyTypes": ["Both"]}},
            {"metadata": {"labels": {"a": "b"}}},
        ],
    ),
    "endpoints": (
        ENDPOINTS,
        subsets(addresses({"ip": "10.1.2.3"})),
        [
            {"subsets": [addresses({"ip": "127.0.0.1"})]},
            {"subsets": [addresses({"ip": "2001:DB8::1"})]},
            {"metadata": {"labels": {"a": "b c"}}},
            {"subsets": None},
        ],
    ),
    "an-endpoint-slice": (
        SLICE,
        endpoint_slice(ip("10.1.2.3")),
        [
            {"addressType": "IPv6"},
            {"endpoints": [ip("10.1.2.4")]},
            {"metadata": {"labels": {"a": "b"}}},
            {"metadata": {"annotations": {"a": "b"}}},
            {"endpoints": [ip("x")], "ports": [{"name": "?"}]},
            {"ports": None},
        ],
    ),
    "an-ip-address": (
        ADDRESS,
        address(),
        [
            {"spec": {"parentRef": {"name": "y"}}},
            {"spec": {"parentRef": None}},
            {"spec": {"parentRef": {"resource": "a/b"}}},
            {"metadata": {"labels": {"a": "b"}}},
        ],
    ),
}

STATUSES: Changes = {
    "an-ingress": (
        INGRESS,
        ingress(defaultBackend=backend()),
        [
            {"status": {"loadBalancer": {"ingress": [one]}}, "spec": {"ingressClassName": "x"}}
            for one in (
                {"ip": "10.0.0.1"},
                {"ip": "x", "hostname": "A"},
                {"hostname": "10.0.0.1"},
                {"hostname": "a.b", "ports": [{"port": 80, "protocol": "TCP"}]},
                {"ip": "2001:DB8::1"},
                {"ip": "010.0.0.1"},
            )
        ],
    ),
}

SCENARIOS = [*trial_scenarios(TRIALS), *change_scenarios(CHANGES), *status_scenarios(STATUSES)]
