"""From the words of a command line to a plain, resolved configuration, and to the method that it describes."""
