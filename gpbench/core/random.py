"""Random keys from names."""

import hashlib
from typing import Any

import jax
from jaxtyping import Array, Key


def run_key(*names: Any) -> Key[Array, ""]:
    """A key that depends on these names alone: a split is reproducible by itself, whatever ran before it."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return jax.random.key(int.from_bytes(digest[:4], "big"))
