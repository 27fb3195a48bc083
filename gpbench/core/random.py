"""Random keys from names, and random permutations that are never written down."""

import hashlib
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray, UInt32

_ROUNDS = 32  # of the shuffle


def run_key(*names: Any) -> Key[Array, ""]:
    """A random key that depends on names alone (data set, method, split), so that a split is reproducible by itself."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return jax.random.key(int.from_bytes(digest[:4], "big"))


def permute(i: Int[Array, "..."], n: int, *, key: PRNGKeyArray) -> Int[Array, "..."]:
    """Image of each i under a random permutation of 0 .. n-1, at a cost that does not grow with n.  The swap-or-not
    shuffle (Hoang, Morris and Rogaway, CRYPTO 2012): in each round a random pivot pairs the numbers, k with (pivot - k)
    mod n, and a coin for each pair decides if the two are swapped."""
    pivots = jax.random.randint(key, (_ROUNDS,), 0, n, dtype=i.dtype)
    salts = jax.random.bits(jax.random.fold_in(key, 1), (_ROUNDS,), jnp.uint32)
    for pivot, salt in zip(pivots, salts):
        i = _round(i, n, pivot, salt)
    return i


@partial(jax.jit, static_argnums=1)  # which is traced once for all rounds; as a loop, a GPU would start each by itself
def _round(i: Int[Array, "..."], n: int, pivot: Int[Array, ""], salt: UInt32[Array, ""]) -> Int[Array, "..."]:
    partner = pivot - i
    partner = jnp.where(partner < 0, partner + n, partner)
    return jnp.where(_coin(jnp.maximum(i, partner), salt), partner, i)


def _coin(number: Int[Array, "..."], salt: Array) -> Array:
    """A fair coin for each number: the top bit of an integer hash (MurmurHash3's finaliser)."""
    x = number.astype(jnp.uint32) ^ salt
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return (x ^ (x >> 16)) >> 31 == 1
