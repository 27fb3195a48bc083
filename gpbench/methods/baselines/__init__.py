"""Baselines, which any method must beat."""
