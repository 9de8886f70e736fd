"""Pods without a kubelet: the runner, its nodes, and the status that it writes."""
