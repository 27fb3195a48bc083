"""What the papers printed: their numbers, and which of those are targets."""
