"""Additive Gaussian processes."""
