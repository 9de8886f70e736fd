"""A PostgreSQL cluster: its members, and the order in which they start and end."""
