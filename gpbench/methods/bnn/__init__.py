"""Bayesian neural networks, the baselines of the paper `aep_dgp`, and what later work compares with."""
