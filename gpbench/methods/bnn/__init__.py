"""Bayesian neural networks: the baselines of the paper `aep_dgp`, and those of later work."""
