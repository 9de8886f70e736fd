"""Pods: their strategy, and the rules of their parts, which workloads share in their templates."""
