"""What objects refer to: counts, placement in watches, and when each name is complete."""
