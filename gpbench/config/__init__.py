"""From the words of a command line to a plain, resolved configuration."""
