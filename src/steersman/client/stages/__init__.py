"""The stages below the verbs: reading, sending, applying."""
