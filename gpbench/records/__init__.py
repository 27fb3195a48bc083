"""Records of runs: what makes two runs the same, where a finished one lies, and on what it was made."""
