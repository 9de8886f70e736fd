"""Admission and conversion webhooks. Not built yet: this room holds no code.

What it will guarantee:

- A handler gets typed old and new objects and answers with a verdict; the review protocol around it stays here.
- A mutation is sent as the exact difference: a field the handler's types do not know passes through unchanged.
- A handler that raises or takes too long denies with a message that says so; it never hangs the API server.
- Certificates are renewed and reloaded without a restart.
"""
