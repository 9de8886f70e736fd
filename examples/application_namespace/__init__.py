"""Namespaces for the applications of teams: created or adopted, and kept as declared."""
