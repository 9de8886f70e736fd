"""What a reconcile writes, and what follows from it: the client of a reconcile, skipped applies, echoes, hot loops."""
