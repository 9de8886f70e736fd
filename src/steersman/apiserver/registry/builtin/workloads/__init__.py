"""Workloads: the strategies of the kinds that create Pods."""
