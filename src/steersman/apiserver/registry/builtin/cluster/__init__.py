"""Kinds of the cluster as a whole: Nodes, classes, certificates and request priorities."""
