"""Types: the form of Kubernetes' own types, and the formats of their values."""
