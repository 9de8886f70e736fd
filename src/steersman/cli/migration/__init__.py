"""``steersman migrate``: rewrites the stored objects of a kind to its storage version."""
