"""Kubernetes Events, written in the background."""
