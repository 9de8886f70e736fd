"""The queue of a controller: a pure state machine, and a shell that waits."""
