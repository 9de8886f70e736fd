"""Services: addresses, ports, types, and what may change."""

from __future__ import annotations

from conformance.bodies import SERVICE, merged, service
from conformance.scenario import delete, get, patch, post, put, scenario

ONE = f"{SERVICE}/a"

GOOD = {
    "cluster-ip": service(),
    "headless": service(clusterIP="None"),
    "headless-without-ports": service(clusterIP="None", ports=[]),
    "node-port": service(type="NodePort"),
    "load-balancer": service(type="LoadBalancer"),
    "load-balancer-local": service(type="LoadBalancer", externalTrafficPolicy="Local"),
    "load-balancer-without-node-ports": service(type="LoadBalancer", allocateLoadBalancerNodePorts=False),
    "external-name": service(type="ExternalName", externalName="example.com", ports=[]),
    "without-selector": service(selector=None),
    "two-ports": service(
        ports=[
            {"name": "a", "port": 80, "targetPort": "http"},
            {"name": "b", "port": 80, "protocol": "UDP", "targetPort": 53},
        ]
    ),
    "app-protocol": service(ports=[{"port": 80, "appProtocol": "kubernetes.io/h2c"}]),
    "affinity": service(sessionAffinity="ClientIP"),
    "affinity-for-a-time": service(
        sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}}
    ),
    "single-stack": service(ipFamilyPolicy="SingleStack", ipFamilies=["IPv4"]),
    "prefer-dual-stack": service(ipFamilyPolicy="PreferDualStack"),
    "internal-traffic": service(internalTrafficPolicy="Local"),
    "external-ips": service(externalIPs=["192.0.2.1"]),
    "not-ready-addresses": service(publishNotReadyAddresses=True),
    "source-ranges": service(type="LoadBalancer", loadBalancerSourceRanges=["192.0.2.0/24"]),
}

BAD = {
    "no-ports": [service(ports=[]), service(ports=None), merged(service(), {"spec": None})],
    "ports": [
        service(ports=[{}]),
        service(ports=[{"port": 0}]),
        service(ports=[{"port": 70000}]),
        service(ports=[{"port": 80, "protocol": "HTTP"}]),
        service(ports=[{"port": 80}, {"port": 81}]),
        service(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]),
        service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]),
        service(ports=[{"port": 80, "name": "A_B"}]),
        service(ports=[{"port": 80, "targetPort": 0}]),
        service(ports=[{"port": 80, "targetPort": "A_B"}]),
        service(ports=[{"port": 80, "appProtocol": "a b"}]),
    ],
    "types": [
        service(type="Odd"),
        service(type="ExternalName"),
        service(type="ExternalName", externalName="A_B"),
        service(type="ClusterIP", externalName="example.com"),
        service(type="ExternalName", externalName="example.com", clusterIP="None"),
    ],
    "addresses": [
        service(clusterIP="x"),
        service(clusterIP="192.0.2.1"),
        service(clusterIP="None", type="NodePort"),
        service(clusterIPs=["None", "None"]),
        service(externalIPs=["x"]),
        service(externalIPs=["127.0.0.1"]),
        service(loadBalancerIP="x", type="LoadBalancer"),
    ],
    "families": [
        service(ipFamilies=["IPv6"]),
        service(ipFamilies=["IPv4", "IPv6"]),
        service(ipFamilies=["IPv5"]),
        service(ipFamilyPolicy="Odd"),
        service(ipFamilyPolicy="RequireDualStack"),
    ],
    "selectors": [service(selector={"a b": "c"}), service(selector={"a": "b c"})],
    "affinity": [
        service(sessionAffinity="Odd"),
        service(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}}),
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 100000}}),
    ],
    "policies": [
        service(internalTrafficPolicy="Odd"),
        service(externalTrafficPolicy="Local"),
        service(type="NodePort", externalTrafficPolicy="Odd"),
        service(healthCheckNodePort=5, type="LoadBalancer"),
        service(trafficDistribution="Odd"),
        service(allocateLoadBalancerNodePorts=True),
        service(loadBalancerClass="a b", type="LoadBalancer"),
        service(loadBalancerClass="a"),
    ],
    "node-ports": [
        service(ports=[{"port": 80, "nodePort": 30080}]),
        service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
        service(type="NodePort", ports=[{"port": 80, "nodePort": -5}]),
    ],
    "source-ranges": [
        service(loadBalancerSourceRanges=["192.0.2.0/24"]),
        service(type="LoadBalancer", loadBalancerSourceRanges=["x"]),
    ],
}

SCENARIOS = [
    *(
        scenario(f"good-{name}", "Kinds", post(SERVICE, body, as_="a"), get(ONE), patch(ONE, {"metadata": {"labels": {"a": "b"}}}), put(ONE, body), get(ONE, accept="application/json;as=Table;v=v1;g=meta.k8s.io"), delete(ONE))
        for name, body in GOOD.items()
    ),
    *(scenario(f"bad-{name}", "Kinds, Status errors", *(post(SERVICE, body) for body in bodies)) for name, bodies in BAD.items()),
    scenario(
        "changes-of-type",
        "Kinds, Update",
        post(SERVICE, service(), as_="a"),
        patch(ONE, {"spec": {"type": "NodePort"}}, as_="b"),
        patch(ONE, {"spec": {"type": "LoadBalancer"}}),
        patch(ONE, {"spec": {"externalTrafficPolicy": "Local"}}),
        patch(ONE, {"spec": {"type": "ClusterIP"}}),
        patch(ONE, {"spec": {"type": "ClusterIP", "externalTrafficPolicy": None, "allocateLoadBalancerNodePorts": None}}),
        patch(ONE, {"spec": {"type": "ExternalName"}}),
        patch(ONE, {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
        # which address it gets is chance: it may be the one from before
        patch(ONE, {"spec": {"type": "ClusterIP", "externalName": None}}, focus=lambda tree: {**tree["spec"], "clusterIP": "", "clusterIPs": len(tree["spec"]["clusterIPs"])}),
    ),
    scenario(
        "changes-of-addresses",
        "Kinds, Update, Status errors",
        post(SERVICE, service(), as_="a"),
        patch(ONE, {"spec": {"clusterIP": "10.0.0.254"}}),
        patch(ONE, {"spec": {"clusterIP": "None"}}),
        patch(ONE, {"spec": {"clusterIP": None}}),
        patch(ONE, {"spec": {"clusterIP": None, "clusterIPs": None}}),
        patch(ONE, {"spec": {"clusterIPs": []}}),
        put(ONE, service()),
        put(ONE, merged(service(), {"spec": {"clusterIP": "${a.spec.clusterIP}"}})),
        post(SERVICE, service("b", clusterIP="${a.spec.clusterIP}")),
        get(ONE),
    ),
    scenario(
        "changes-of-ports",
        "Kinds, Update",
        post(SERVICE, service(type="NodePort"), as_="a"),
        patch(ONE, {"spec": {"ports": [{"port": 81}]}}),
        patch(ONE, {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 443, "name": "b"}]}}, as_="b"),
        put(ONE, service(type="NodePort")),
        post(SERVICE, service("b", type="NodePort", ports=[{"port": 80, "nodePort": "${b.spec.ports.1.nodePort}"}])),
        get(ONE),
    ),
    scenario("address-is-free-again", "Kinds", post(SERVICE, service(), as_="a"), delete(ONE), post(SERVICE, service("b", clusterIP="${a.spec.clusterIP}")), delete(f"{SERVICE}/b"), alone=True),
    scenario("dry-runs-take-no-address", "Kinds, dryRun", post(SERVICE, service(type="NodePort"), dryRun="All"), post(SERVICE, service()), patch(ONE, {"spec": {"type": "NodePort"}}, dryRun="All"), get(ONE)),
]  # fmt: skip
