"""Bad input of every kind, drawn at random but the same each time: one line, the right exit code, and nothing lost.

Here 320 inputs (90 cards, 90 tables of data, 80 words of a command line, 60 records); with the lists of
`test_refusals.py` (64), `test_errors.py` (28) and `test_bad_files.py` (31), 443.  None has a traceback, and none is
accepted in silence.
"""

import contextlib
import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from samples import sample

from gpbench import cli
from gpbench.config.card_keys import CARD as KEYS
from gpbench.config.card_keys import KINDS, SOURCE
from gpbench.config.compose import Composer
from gpbench.data_registry import READERS
from gpbench.errors import ConfigError

CARD = {
    "name": "mine",
    "task": "regression",
    "rows": 30,
    "inputs": 2,
    "title": "Mine",
    "splits": {"set": "random90", "sets": {"random90": 20}},
    "sources": [{"kind": "file", "path": "mine.csv", "target": "price", "delimiter": ",", "skip": 0}],
}
TABLE = [["a", "b", "price"], *([f"{i % 7}", f"{i * i % 11}", f"{i * 1.5}"] for i in range(30))]
RECORD = sample("0" * 16, setting="m=15%", metrics={"nll": 0.5}, seconds={"train": 2.0}, schema=1).to_json()

CARD_KEYS = KEYS.known
SOURCE_KEYS = {*(SOURCE | KINDS["file"] | READERS["table"].options).known} - {"kind"}
MAPPINGS = st.dictionaries(st.sampled_from("ab"), st.integers(), min_size=1)
WORDS = st.text("abcxyz", min_size=4, max_size=8)
NOT_COUNTS = st.one_of(
    st.integers(max_value=0),
    st.floats(allow_nan=False).filter(lambda x: x != int(x) if abs(x) < 1e9 else True),
    WORDS,
    st.booleans(),
    st.lists(st.integers(), max_size=2),
    MAPPINGS,
)


def drawn(examples):
    """The same examples each time, and no time limit for any: the machine may be busy.  They are small as they are."""
    limits = {"deadline": None, "database": None, "phases": [Phase.generate]}
    return settings(max_examples=examples, derandomize=True, suppress_health_check=[HealthCheck.too_slow], **limits)


def call(*words) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def assert_one_line(err: str) -> None:
    assert err.startswith("gpbench: ") and err.count("\n") == 1 and len(err) > 20, err
    assert err[:-1].isprintable(), err


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "dataset").mkdir()
    return folder


def write(folder: Path, card: str | bytes, table: str | bytes) -> None:
    for path, content in ((folder / "dataset" / "mine.yaml", card), (folder / "mine.csv", table)):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def text_of(rows) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


@st.composite
def cards(draw) -> str | bytes:
    """Texts of cards with one fault each."""
    card, text = json.loads(json.dumps(CARD)), yaml.safe_dump(CARD)
    source, splits = card["sources"][0], card["splits"]
    fault = draw(st.sampled_from(["lacks", "unknown", "number", "kind", "splits", "shape", "name", "text", "bytes"]))
    if fault == "lacks":
        del card[draw(st.sampled_from(["name", "task", "sources"]))]
    elif fault == "unknown":
        draw(st.sampled_from([card, source, splits, splits["sets"]]))[draw(WORDS)] = draw(st.integers(1, 9))
    elif fault == "number":
        card[draw(st.sampled_from(["rows", "inputs", "outputs"]))] = draw(NOT_COUNTS)
    elif fault == "kind":
        at, key = draw(st.sampled_from([(card, "task"), (source, "kind"), (source, "reader"), (splits, "set")]))
        at[key] = draw(WORDS)
    elif fault == "splits":
        splits["sets"]["random90"] = draw(NOT_COUNTS)
    elif fault == "shape":
        card[draw(st.sampled_from(["sources", "splits", "labels", "variants"]))] = draw(st.integers(1, 9) | WORDS)
    elif fault == "name":
        card["name"] = draw(st.sampled_from(["../a", "a/b", "a b", "\x1b[2J", "-a", ".."]))
    elif fault == "text":
        at = draw(st.integers(1, text.count("\n") - 1))
        lines = text.splitlines()
        return "\n".join(
            [*lines[:at], draw(st.sampled_from(["\tkey: 1", "a: [", "{", "a: 'b", "- x\nkey:"])), *lines[at:]]
        )
    else:
        return draw(st.sampled_from([b"\xff\xfe\x00", b"name: \xe9\n", b"\x00", b"", b"- a\n", b"3\n"]))
    return yaml.safe_dump(card)


@drawn(90)
@given(cards())
def test_a_bad_card_is_one_line_with_its_file(folder, card):
    write(folder, card, text_of(TABLE))
    code, out, err = call("data", "info", "mine", "--config-dir", folder)
    assert code == 2 and out == "", err
    assert_one_line(err)
    assert "mine.yaml" in err


def test_a_bad_card_hides_no_other(folder):
    write(folder, "name: [", text_of(TABLE))
    code, out, err = call("ls", "datasets", "--config-dir", folder)
    assert code == 2 and "wdbc" in out
    assert_one_line(err)
    assert "mine.yaml, line " in err


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-2, 40), st.floats(), WORDS)
JSON = PLAIN | st.lists(PLAIN, max_size=2) | MAPPINGS


@st.composite
def strange_cards(draw) -> str:
    """Texts of cards with any value for one of the keys, which may be a good one."""
    card = json.loads(json.dumps(CARD))
    source, splits = card["sources"][0], card["splits"]
    parts = [(card, CARD_KEYS), (source, SOURCE_KEYS), (splits, ("set", "sets", "train_rows", "test_rows"))]
    part, keys = draw(st.sampled_from(parts))
    part[draw(st.sampled_from(sorted(keys)))] = draw(JSON)
    return yaml.safe_dump(card)


@drawn(90)
@given(strange_cards())
def test_a_value_of_any_kind_in_a_card_is_accepted_or_one_line(folder, card):
    write(folder, card, text_of(TABLE))
    for words in (["info", "mine"], ["rows", "mine", "--split", 0, "--out", folder / "any.npz"]):
        code, _, err = call("data", *words, "--config-dir", folder)
        assert code in (0, 2, 3) and bool(err) == bool(code), err
        if code:
            assert_one_line(err)


@st.composite
def tables(draw) -> str | bytes:
    """Tables of data with one fault each."""
    rows = [list(row) for row in TABLE]
    row, column = draw(st.integers(1, 30)), draw(st.integers(0, 2))
    fault = draw(st.sampled_from(["word", "missing", "short", "long", "header", "twice", "few", "bytes", "sep"]))
    if fault == "word":
        rows[row][column] = draw(WORDS | st.sampled_from(["1,5", "1 2", "=1+1", "\x1b[2J"]))
    elif fault == "missing":
        rows[row][column] = draw(st.sampled_from(["", " ", "nan", "inf", "-inf", "1e999"]))
    elif fault == "short":
        del rows[row][column]
    elif fault == "long":
        rows[row].append("1")
    elif fault == "header":
        rows[0][2] = draw(WORDS)
    elif fault == "twice":
        rows[0][column] = rows[0][(column + 1) % 3]
    elif fault == "few":
        rows = rows[: draw(st.integers(0, 5))]
    elif fault == "bytes":
        return draw(st.binary(min_size=1, max_size=60)) + b"\x00"
    else:
        return text_of(rows).replace(",", draw(st.sampled_from([";", "\t", "|"])))
    return text_of(rows)


@drawn(90)
@given(tables())
def test_a_bad_table_is_one_line_with_its_data_set(folder, table):
    write(folder, yaml.safe_dump({**CARD, "rows": None}), table)
    before = (folder / "mine.csv").read_bytes()
    code, out, err = call("data", "rows", "mine", "--split", 0, "--out", folder / "out.npz", "--config-dir", folder)
    assert code == 3 and out == "", err
    assert_one_line(err)
    assert "mine" in err and not (folder / "out.npz").exists() and (folder / "mine.csv").read_bytes() == before


def test_the_card_and_the_table_without_a_fault_are_accepted(folder):
    write(folder, yaml.safe_dump(CARD), text_of(TABLE))
    assert call("data", "rows", "mine", "--split", 0, "--out", folder / "good.npz", "--config-dir", folder)[0] == 0


COUNTS = ["method.steps", "protocol.steps", "run.jobs", "method.trial_steps"]
POSITIVE = ["method.target_noise", "protocol.target_noise", "method.optimiser.up"]
CHOICES = ["protocol.precision", "protocol.inputs", "run.device", "run.preset", "method.likelihood", "method.kernel"]
FLAGS = ["run.again", "run.keep", "run.timing", "data.offline"]


@st.composite
def words(draw) -> str:
    """Words of `gpbench run` that no run can have."""
    kind = draw(st.sampled_from(["count", "positive", "choice", "flag", "unknown", "split", "garbled"]))
    if kind == "count":
        value = draw(
            st.integers(max_value=0) | st.sampled_from([1.5, "nan", "inf", "true", "null", "[1]", "{a: 1}", "x"])
        )
        return f"{draw(st.sampled_from(COUNTS))}={value}"
    if kind == "positive":
        value = draw(
            st.floats(max_value=0.0, allow_infinity=False) | st.sampled_from(["nan", "inf", "true", "[1]", "x"])
        )
        return f"{draw(st.sampled_from(POSITIVE))}={value}"
    if kind == "choice":
        return f"{draw(st.sampled_from(CHOICES))}={draw(WORDS)}"
    if kind == "flag":
        return f"{draw(st.sampled_from(FLAGS))}={draw(WORDS | st.integers(2, 9))}"
    if kind == "unknown":
        return f"{draw(st.sampled_from(['', 'method.', 'protocol.', 'run.', 'data.']))}{draw(WORDS)}=1"
    if kind == "split":
        return f"{draw(st.sampled_from(['split', 'seed', 'output']))}={draw(st.integers(max_value=-1) | WORDS)}"
    return draw(st.sampled_from(["{}", "=", "{}=[1", "{}={{a", "{}={{a:", "{}=(", "~~{}", "++{}", "{} = = 1"])).format(
        draw(WORDS)
    )


@drawn(80)
@given(words())
def test_a_bad_word_is_one_line(word):
    with pytest.raises(ConfigError) as caught:
        Composer().compose([word])
    assert len(str(caught.value)) > 20, caught.value


@st.composite
def records(draw) -> bytes:
    """Files `record.json` with one fault each."""
    record, key = dict(RECORD), draw(st.sampled_from(sorted(RECORD.keys() - {"schema"})))
    fault = draw(st.sampled_from(["lacks", "type", "status", "id", "number", "newer", "cut", "bytes"]))
    if fault == "lacks":
        del record[key]
    elif fault == "type":
        record[key] = draw(st.sampled_from([None, [], 1.5] + ([{}] if key not in ("metrics", "seconds") else [])))
    elif fault in ("status", "id"):
        record[fault] = draw(WORDS)
    elif fault == "number":
        record[draw(st.sampled_from(["metrics", "seconds"]))] = {"nll": draw(WORDS | MAPPINGS)}
    elif fault == "newer":
        record["schema"] = draw(st.integers(1000, 9999))
    text = json.dumps(record).encode()
    if fault == "cut":
        return text[: draw(st.integers(0, len(text) - 1))]
    return draw(st.sampled_from([b"\xff\xfe", b"[]", b"3", b"null", b"\x00" * 9])) if fault == "bytes" else text


@drawn(60)
@given(records())
def test_a_bad_record_is_named_kept_and_hides_no_other(tmp_path_factory, record):
    results = tmp_path_factory.mktemp("results")
    for id, content in ((RECORD["id"], record), ("1" * 16, json.dumps({**RECORD, "id": "1" * 16}).encode())):
        (results / "runs" / id).mkdir(parents=True)
        (results / "runs" / id / "record.json").write_bytes(content)
    code, out, err = call("ls", "runs", "--results", results, "--json")
    assert code == 0 and [run["id"] for run in json.loads(out)] == ["1" * 16]
    assert_one_line(err)
    assert RECORD["id"] in err
    assert (results / "runs" / RECORD["id"] / "record.json").read_bytes() == record
    assert call("show", RECORD["id"], "--results", results)[0] == 2
