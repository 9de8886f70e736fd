"""Networks: Ingresses, NetworkPolicies, endpoints, and the addresses of Services."""
