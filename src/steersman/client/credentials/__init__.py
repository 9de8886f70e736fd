"""How the client proves its identity: fixed headers, a token file that is re-read, an exec plugin."""
