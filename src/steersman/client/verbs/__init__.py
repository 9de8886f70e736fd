"""The verbs of a client, and what they send: reads, watches, writes, and combinations of them."""
