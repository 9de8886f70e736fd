"""Costs of expressions: estimated from a schema, and counted at run time."""
