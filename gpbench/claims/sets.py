"""Kinds of predicates that have one number of all data sets: shares of pairs, and average ranks."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from gpbench.analysis import rank_tests
from gpbench.analysis.statistics import common_splits
from gpbench.claims import quantities
from gpbench.claims.clauses import Clause
from gpbench.claims.estimates import Exact, clustered
from gpbench.claims.numbers import Number, key_of
from gpbench.claims.selection import KeyedCell, group, match, rival_keys
from gpbench.claims.shares import Share
from gpbench.errors import ConfigError
from gpbench.metrics import better


def shares(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The share of cells in which a's mean is better than b's; ties do not count as better."""
    sign = 1 if _direction(clause, sides) == "lower" else -1
    outcomes: dict[tuple[str, ...], dict[str, list[bool | None]]] = {}
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            values_a, values_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([values_a, values_b])
            won = sign * fmean(values_a[k] - values_b[k] for k in common) < 0 if common else None
            wins = outcomes.setdefault(("", "", *key_of(clause, a)[2 : 2 + len(clause.each)]), {})
            wins.setdefault(a.keys["dataset"], []).append(won)
    for key, by_set in outcomes.items():
        known = [[won for won in wins if won is not None] for wins in by_set.values()]
        yield Number(key, Share([wins for wins in known if wins]) if any(known) else None)


def ranks(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Average rank of a minus that of each b, over the data sets of which all methods `among` have a split.

    Ranks are of means over the splits that all of them have, and their differences have an error between data sets.
    """
    sign = 1 if _direction(clause, sides) == "lower" else -1
    keys = rival_keys(clause)
    rows: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, list[float]]] = {}
    for key, cells in group(sides["among"], clause.keys).items():
        firsts, rivals = ([k for k, cell in enumerate(cells) if cell in sides[side]] for side in "ab")
        names = [tuple(cells[k].keys.get(key, "") for key in keys) for k in rivals]
        if len(firsts) != 1 or not rivals or len({*names}) < len(names) or firsts[0] in rivals:
            raise ConfigError(f"{name}: a and each b must be one cell each of those `among`, on {key[0]}")
        values = [cell.values(clause.metric) for cell in cells]
        common = common_splits(values)
        ranks = (
            rank_tests.average_ranks(np.array([[sign * fmean(by_split[k] for k in common) for by_split in values]]))[0]
            if common
            else None
        )
        for rival, k in zip(names, rivals):
            by_set = rows.setdefault((("", "", *key[2:]), rival), {})
            by_set.setdefault(key[0], []).extend([] if ranks is None else [float(ranks[firsts[0]] - ranks[k])])
    for (key, rival), by_set in rows.items():
        yield Number(key, clustered(by_set), " ".join(filter(None, rival)))


def friedman(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Friedman's p-value of equal average ranks of all methods `among`, over the data sets that all have."""
    rows: dict[tuple[str, ...], list[list[float]]] = {}
    for key, cells in group(sides["among"], clause.keys).items():
        values = [cell.values(clause.metric) for cell in cells]
        row = [fmean(by_split[k] for k in common) for by_split in values] if (common := common_splits(values)) else None
        rows.setdefault(("", "", *key[2:]), []).extend([row] if row else [])
    for key, means in rows.items():
        if len({len(row) for row in means}) > 1:
            raise ConfigError(f"{name}: the data sets have different numbers of methods: give values that all have")
        p = rank_tests.friedman(rank_tests.average_ranks(np.array(means)))[1] if len(means) > 1 else None
        yield Number(key, None if p is None else Exact(p, len(means)))


def _direction(clause: Clause, sides: Mapping[str, Sequence[KeyedCell]]) -> str | None:
    """The direction in which the metric improves, from the records where it is a user's own."""
    records = (record for cells in sides.values() for cell in cells for record in cell.records)
    return better(quantities.base(clause.metric), records)
