"""A cluster of PostgreSQL: members, their order, their end."""
