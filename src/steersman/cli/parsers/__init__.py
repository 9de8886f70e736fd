"""What the command line accepts: the arguments of each command, and the function that it calls."""
