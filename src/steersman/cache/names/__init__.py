"""The scopes of a kind of which only objects are cached to which others refer."""
