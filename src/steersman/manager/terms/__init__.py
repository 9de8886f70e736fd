"""The work of a manager: in terms of leadership, or in those of a replica with shards."""
