"""Sweeps of many runs: their jobs, the processes or cluster that runs these, and their outcome."""
