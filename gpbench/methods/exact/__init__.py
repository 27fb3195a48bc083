"""Exact inference, for few rows."""
