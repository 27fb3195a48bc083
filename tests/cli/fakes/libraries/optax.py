"""In the place of optax: see `jax.py`."""
