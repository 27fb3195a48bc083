"""Several outputs and groups of rows: from a user's file to the target of one run."""

import itertools

import numpy as np
import pytest
from small_tables import read, steps, table

from gpbench.data import cards, load, prepare, sources, splits, tables
from gpbench.data import store as local
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Raw
from gpbench.data.splits import Member, label, members, name_of_output
from gpbench.errors import ConfigError, DataError

CARD = """
name: mine
task: regression
sources: [{kind: file, path: mine.csv, target: [lift, drag], group: wing}]
splits: {set: groups90, sets: {groups90: 3, random90: 3}}
"""
ROWS = [f"{i * 7 % 41},{'abcde'[i % 5]},{i % 7},{i / 2},{-i}" for i in range(40)]
TOY = {"name": "toy", "task": "regression"}


@pytest.fixture
def write(tmp_path, new_file):
    def write(rows=ROWS, card=CARD):
        new_file(tmp_path / "dataset" / "mine.yaml", card)
        (tmp_path / "dataset" / "mine.csv").write_text("\n".join(["speed,wing,angle,lift,drag", *rows]) + "\n")
        card = cards.read("mine", [tmp_path])
        return card, lambda: load(card, config_dirs=[tmp_path])

    return write


def test_a_users_table_gives_every_output_its_name_and_every_row_its_group_that_goes_with_it(write):
    dataset = write()[1]()
    assert dataset.columns == ("speed", "angle") and dataset.outputs == ("lift", "drag")
    np.testing.assert_array_equal(dataset.y, np.stack([np.arange(40) / 2, -np.arange(40)], axis=1))
    np.testing.assert_array_equal(dataset.groups, np.arange(40) % 5)
    dataset = write([*ROWS[:3], "3,d,3,,", *ROWS[4:]], CARD + "incomplete: drop\n")[1]()
    np.testing.assert_array_equal(dataset.groups, np.delete(np.arange(40) % 5, 3))


def test_numbers_count_columns_without_a_header_and_outputs_and_groups_are_part_of_the_checksum():
    raw = tables.table([b"1 2 3 9\n4 5 6 8\n"], {"target": [-2, 1], "group": 3, "delimiter": "space"})
    assert (raw.X.tolist(), raw.target.tolist(), raw.groups) == ([[1], [4]], [["3", "2"], ["6", "5"]], ["9", "8"])
    assert raw.outputs == ()
    X, y = np.eye(4), np.arange(8.0).reshape(4, 2)
    raws = [Raw(X, y), Raw(X, y[:, 0]), Raw(X, y[:, ::-1])]
    raws += [Raw(X, y, groups=groups) for groups in ([0, 0, 1, 1], [0, 1, 1, 1])]
    assert len({from_raw(TOY, raw).checksum for raw in raws}) == len(raws)
    assert from_raw(TOY, Raw(X, y[:, :1])).checksum == from_raw(TOY, raws[1]).checksum


def test_groups90_keeps_groups_whole_and_the_store_keeps_outputs_and_groups(write, store):
    card, load_it = write([f"{i},{i // 4},{i % 7},{i},{-i}" for i in range(80)])
    dataset = load_it()
    tested = []
    for k in range(3):
        train, test = splits.indices(card, dataset, k)
        assert sorted([*train, *test]) == list(range(80)) and len(test) == 8
        assert not set(dataset.groups[train]) & set(dataset.groups[test])
        tested.append(tuple(sorted(test)))
    assert len(set(tested)) == 3
    card, load_it = write()
    card["checksum"] = load_it().checksum
    first, second_copy = load_it(), local.get(card, store)  # the second load puts it there
    assert second_copy.outputs == first.outputs and second_copy.checksum == first.checksum
    np.testing.assert_array_equal(second_copy.y, first.y)
    np.testing.assert_array_equal(second_copy.groups, first.groups)


@pytest.mark.parametrize(
    ("columns", "output", "message"),
    [
        (2, None, r"no output is chosen: toy has the outputs 0 to 1 \(y1, y2\)"),
        (2, 2, "output=2: toy has the outputs 0 to 1"),
        (1, 0, "output=0: toy has one output only; leave `output` out"),
    ],
)
def test_an_output_that_is_missing_superfluous_or_out_of_range_is_one_clear_line(columns, output, message):
    dataset = from_raw(TOY, Raw(np.eye(6), np.arange(6.0 * columns).reshape(6, columns)))
    with pytest.raises(ConfigError, match=message):
        prepare(dataset, np.arange(4), np.arange(4, 6), output=output)


def test_a_constant_output_is_named_and_stops_no_other():
    y = np.stack([np.arange(6.0), np.ones(6)], axis=1)
    dataset = from_raw(TOY, Raw(np.eye(6), y))
    with pytest.raises(DataError, match="column 'y2': the targets of the 4 training rows are all equal"):
        prepare(dataset, np.arange(4), np.arange(4, 6), output=1)
    near = from_raw(TOY, Raw(np.eye(6), np.stack([np.arange(6.0), 1e15 + np.arange(6.0)], axis=1)))
    with pytest.raises(DataError, match="targets of the 4 training rows differ by rounding alone"):
        prepare(near, np.arange(4), np.arange(4, 6), output=1)
    p = prepare(dataset, np.arange(4), np.arange(4, 6), output=0)
    np.testing.assert_allclose(p.y_test * p.y_std + p.y_mean, [4.0, 5.0], rtol=1e-12)
    assert p.y_mean == 1.5


@pytest.mark.parametrize(
    ("card", "raw", "message"),
    [
        ({"outputs": 3}, Raw(np.eye(2), np.eye(2)), "the table has 2 outputs, but its card says 3"),
        ({"output_names": ["a"]}, Raw(np.eye(2), np.eye(2)), "2 outputs, but its card names 1"),
        ({"task": "binary"}, Raw(np.eye(2), np.eye(2)), "several are for regression only"),
        ({}, Raw(np.eye(2), np.array([["1", ""], ["2", "3"]])), r"the target, column 'y2', has 1 missing cell \(row 1"),
        ({}, Raw(np.eye(4) * 1j, np.ones(4)), "inputs of type complex128: must be real numbers"),
        ({}, Raw(np.ones(4), np.ones(4)), r"inputs of shape \(4,\): must be \(rows, inputs\)"),
        ({}, Raw(np.eye(4), np.ones(4) * 1j), "targets of type complex128: must be real numbers"),
        ({}, Raw(np.eye(4), np.ones((4, 1, 1))), r"targets of shape \(4, 1, 1\): must be \(rows,\)"),
        ({}, Raw(np.eye(4), np.array(3.0)), r"targets of shape \(\): must be"),
        ({}, Raw(np.eye(2), np.ones(2), groups=[1, 2, 3]), "2 rows of inputs, but 2 targets and 3 groups"),
        ({}, Raw(np.eye(2), np.ones(3)), "2 rows of inputs, but 3 targets$"),
        ({}, Raw(np.eye(2), np.ones(2), folds={"yang": np.ones(2)}), "'yang' is of type float64: must be whole"),
        ({"incomplete": "drop"}, Raw(np.eye(2), np.array([["1", ""], ["2", ""]])), "'y2' has no number: take it out"),
    ],
)
def test_a_table_that_is_not_what_its_card_says_is_one_clear_line(card, raw, message, one_line):
    with one_line(DataError, match=message):
        from_raw({**TOY, **card}, raw)


OUTPUTS = list(itertools.product([0, 0.2, 0.6], [0, 0.3], ["random90", "kfold", "temporal"]))


@pytest.mark.parametrize(("a", "b", "kind"), OUTPUTS)
def test_a_row_that_lacks_an_output_is_a_row_of_the_others(a, b, kind, tmp_path):
    rng = np.random.default_rng(int(10 * (a + b)))
    lacks = rng.random((200, 2)) < [a, b]
    y = rng.normal(size=(200, 2)).round(3)
    text = np.where(lacks, "", y.astype(str))
    file = tmp_path / "own.csv"
    file.write_bytes(table({"x": y[:, 0].round(1), "t": range(200), "a": text[:, 0], "b": text[:, 1]}))
    source = {"kind": "file", "path": str(file), "target": ["a", "b"], "order": "t"}
    card = {"name": "own", "task": "regression", "outputs": 2, "sources": [source], "incomplete": "drop"}
    card = cards.checked(card | {"splits": {"set": kind}})
    dataset = sources.load(card, store=tmp_path)
    kept = ~lacks.all(axis=1)
    np.testing.assert_array_equal(dataset.y, np.where(lacks, np.nan, y)[kept])
    for output, k in itertools.product(range(2), range(splits.count(card))):
        train, test = splits.indices(card, dataset, k, output=output)
        whole = splits.indices(card, dataset, k)
        for rows, all_rows in ((train, whole[0]), (test, whole[1])):
            assert {*rows} == {row for row in all_rows if not lacks[kept][row, output]}
    if lacks.any():
        with pytest.raises(DataError, match=r"the target, column '[ab]', has \d+ missing cell"):
            sources.load({key: value for key, value in card.items() if key != "incomplete"}, store=tmp_path)


def test_an_output_of_few_rows_is_refused_for_the_splits_that_lack_it():
    rows = {"x": steps(60), "a": [*range(4), *[""] * 56], "b": steps(60), "y": steps(60)}
    card = {"name": "odd", "task": "regression", "outputs": 2, "incomplete": "drop"}
    dataset = read(rows, card=card, target=["a", "b"])
    lines = []
    for k in range(20):
        try:
            assert len(splits.indices(card, dataset, k, output=0)[1]) >= 1
        except DataError as error:
            lines.append(str(error))
        splits.indices(card, dataset, k, output=1)
    assert 0 < len(lines) < 20 and "4 rows of 'a' are too few to split" in lines[0]
    assert "name other splits or outputs by split= and output=" in lines[0] and "\n" not in lines[0]


ARM = {"name": "arm", "outputs": 3, "splits": {"set": "random90", "sets": {"random90": 5}}}
PLAIN = {key: value for key, value in ARM.items() if key != "outputs"}


def test_every_output_of_every_split_is_a_run_with_a_name_and_an_identity_of_its_own_only_where_there_are_several():
    assert members(ARM, [0, 2]) == [(k, o) for k in (0, 2) for o in (0, 1, 2)]
    assert members(ARM, 1, [2, 0]) == [(1, 2), (1, 0)] and members(ARM, 1, 1) == [(1, 1)]
    assert members(PLAIN, 1) == [Member(1)] and members(PLAIN, 1, 0) == [Member(1, None)]
    assert Member(3).identity == {"split": 3} and Member(3).cell == {}
    assert Member(3, 0).identity == {"split": 3, "output": 0} and Member(3, 0).cell == {"output": 0}
    assert [name_of_output(card, 1) for card in (ARM, {**ARM, "output_names": ["a", "b", "c"]})] == ["y2", "b"]
    assert name_of_output(PLAIN, None) == ""


@pytest.mark.parametrize("card, output", [(ARM, 3), (ARM, -1), (ARM, [0, 7]), (PLAIN, 1), (ARM, "first")])
def test_outputs_that_there_are_not_are_one_line(card, output):
    with pytest.raises(ConfigError, match=r"^output=.*arm has"):
        members(card, 0, output)


@pytest.mark.parametrize(
    "group, text",
    [
        ([Member(3)], "split 3"),
        ([Member(0), Member(1), Member(2)], "splits 0-2"),
        ([Member(0), Member(4)], "splits 0,4"),
        ([Member(1, 0), Member(1, 1)], "split 1, outputs 0-1"),
    ],
)
def test_what_trains_together_is_told_shortly(group, text):
    assert label(group) == text
