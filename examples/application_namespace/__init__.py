"""Namespaces for the applications of teams: made or adopted, kept as they should be."""
