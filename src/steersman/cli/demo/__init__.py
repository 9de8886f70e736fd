"""``steersman demo``: an operator at work, drawn in the terminal."""
