"""One run: a server, the processes of an operator and a user on one loop in virtual time, with the faults of a schedule."""
