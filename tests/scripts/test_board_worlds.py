"""Simulated worlds of the leaderboard: probabilities as stated, a truth of its own, and the table."""

import math
import sys

import board_worlds as worlds
import numpy as np
import pytest


def test_a_method_wins_with_the_bradley_terry_probability_of_the_strengths():
    losses = worlds.World(2, 12, spread=1.0, shared=0.0).losses(np.random.default_rng(0), 20_000)
    chance = 1 / (1 + math.exp(-1.0))
    assert np.mean(losses[0] < losses[1]) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 60_000))


def test_splits_share_the_noise_of_their_data_set_and_lost_runs_are_of_the_last_methods():
    losses = worlds.World(3, 12, shared=1.0, lost=0.5).losses(np.random.default_rng(0), 4_000)
    assert np.all(losses == losses[:, :, :1])
    lost = np.isinf(losses).mean(axis=(1, 2))
    assert lost == pytest.approx([0.0, 0.25, 0.5], abs=4 * math.sqrt(0.25 / 4_000))


def test_the_truth_has_the_points_of_the_strengths():
    points, rates = worlds.World(2, 12, spread=1.0).truth(np.random.default_rng(0))
    assert points[0] - points[1] == pytest.approx(400 / math.log(10), abs=12)
    assert rates[0] == pytest.approx(1 / (1 + math.exp(-1.0)), abs=0.015)


def test_the_script_prints_a_line_for_each_world(monkeypatch, capsys):
    monkeypatch.setattr(worlds, "WORLDS", worlds.WORLDS[:2])
    monkeypatch.setattr(sys, "argv", ["board_worlds.py", "--worlds", "2", "--draws", "20"])
    worlds.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and head.count("|") == lines[0].count("|") == 2 and lines[0].count("%") == 5
