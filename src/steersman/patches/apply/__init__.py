"""Server-side apply: merging, ownership of fields, and ``metadata.managedFields``."""
