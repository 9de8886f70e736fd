"""Builtin: the defaults, validation and tables of Kubernetes' own kinds; `registry.kind_rules` lists them by kind."""
