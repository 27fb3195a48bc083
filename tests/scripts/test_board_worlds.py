"""Simulated worlds of the leaderboard: probabilities as stated, the bars of its rules with controls, and the table."""

import math
import sys

import board_worlds as worlds
import numpy as np
import pytest


def test_wins_noise_lost_runs_families_and_the_truth_are_those_of_the_strengths():
    losses = worlds.World(2, 12, spread=1.0).losses(np.random.default_rng(0), 60_000)
    chance = 1 / (1 + math.exp(-1.0))
    assert np.mean(losses[0] < losses[1]) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 60_000))
    losses = worlds.World(3, 12, lost=0.5).losses(np.random.default_rng(0), 4_000)
    assert np.isinf(losses).mean(axis=1) == pytest.approx([0.0, 0.25, 0.5], abs=4 * math.sqrt(0.25 / 4_000))
    losses = worlds.World(2, 12, family=3, kin=1.0).losses(np.random.default_rng(0), 12)
    assert np.all(losses.reshape(2, 4, 3) == losses[:, ::3, None]) and len({*losses[0]}) == 4
    assert worlds.World(2, 12, spread=1.0).truth == pytest.approx([chance, 1 - chance], abs=0.015)
    assert worlds.World(4, 12, erratic=4.0).truth == pytest.approx([0.5] * 4, abs=0.01)


@pytest.mark.parametrize("world", [worlds.World(20, 11), worlds.World(20, 11, erratic=2.0)])
def test_equal_methods_are_seldom_told_apart_but_without_a_correction_nearly_always(world):
    false, *_, best, uncorrected, _ = worlds.measured(world, 60)
    assert false <= 100 * (0.07 + 2 * math.sqrt(0.07 * 0.93 / 60)) and best >= worlds.KEPT and uncorrected > 60


def test_a_world_of_26_methods_has_its_differences_found_and_few_of_the_claims_are_false():
    world = next(w for w in worlds.WORLDS if isinstance(w, worlds.World) and w.found)
    values = worlds.measured(world, 40)
    assert not worlds.misses(world, values) and values[1] < 5
    assert worlds.misses(world, values * [1, 1, 0.5, 0.5, 1, 1]) == ["found", "best kept"]
    assert worlds.misses(worlds.World(2, 12), np.array([8.0, 8, 0, 95, 8, 2])) == ["false claims"]


def test_the_sets_of_a_family_taken_as_independent_make_false_claims_and_those_taken_as_one_do_not():
    *_, independent = worlds.LIMITS
    as_one = worlds.World(10, 24, family=3, kin=0.8)
    assert worlds.measured(independent, 60)[0] > 12 > worlds.measured(as_one, 60)[0]


def test_the_script_prints_a_line_per_world_and_redrawn_records_have_the_truth_of_all_data_sets(monkeypatch, capsys):
    redrawn = worlds.Redrawn("regression", 5)
    assert redrawn.board(np.random.default_rng(0)).shares.shape[1] == 5
    assert redrawn.truth.mean() == pytest.approx(0.5) and np.ptp(redrawn.truth) > 0.3
    monkeypatch.setattr(worlds, "WORLDS", worlds.WORLDS[:2])
    monkeypatch.setattr(sys, "argv", ["board_worlds.py", "--draws", "2"])
    assert worlds.main() in (0, 1)
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(line.count("|") == 3 for line in lines)
    assert head.count("|") == 2 and "a limit" in lines[-1]
