"""The objects of requests as expressions see them: by a schema, or by the types of Go."""
