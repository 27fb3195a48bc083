"""YearPredictionMSD, from small archives of the form that its site describes; the official file was never read."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from gpbench.data import archives, cards, formats, sources, splits
from gpbench.data.conversion import from_raw
from gpbench.errors import DataError

RNG = np.random.default_rng(0)
ROW = b",".join([b"2001", *[b"1.5"] * 90])


def archive(*rows: bytes, name: str = "YearPredictionMSD.txt") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, b"".join(row + b"\n" for row in rows))
    return buffer.getvalue()


def songs(count: int) -> tuple[np.ndarray, bytes]:
    """A table and its archive: years, and inputs of five decimals as the official file has them."""
    table = np.column_stack([RNG.integers(1922, 2012, count), RNG.normal(0, 100, (count, 90)).round(5)])
    return table, archive(*(b",".join([b"%d" % row[0], *(b"%.5f" % x for x in row[1:])]) for row in table))


def test_the_year_is_the_first_column_and_90_inputs_follow_in_single_precision():
    table, content = songs(7)
    raw = formats.year_zip([content], {"rows": 7})
    np.testing.assert_array_equal(raw.target, table[:, 0])
    np.testing.assert_array_equal(raw.X, table[:, 1:].astype(np.float32))
    dataset = from_raw(cards.read("year"), raw)
    assert dataset.X.shape == (7, 90) and (dataset.columns[0], dataset.columns[-1]) == (
        "timbre_mean1",
        "timbre_covariance78",
    )


def test_line_ends_of_windows_and_a_last_line_without_end_are_read():
    content = archive(ROW + b"\r", ROW)
    assert formats.year_zip([content], {"rows": 2}).target.tolist() == [2001, 2001]


WHOLE = archive(*[ROW] * 300)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(ROW, ROW, ROW[:-4], ROW), "line 3 of YearPredictionMSD.txt has 90 numbers, not 91"),
        (archive(*[ROW + b",1"] * 4), "line 1 of YearPredictionMSD.txt has 92 numbers, not 91"),
        (archive(ROW, ROW, ROW, ROW[:-3] + b"red"), "line 4 of YearPredictionMSD.txt: could not convert .* b'red"),
        (archive(ROW, ROW, b"", ROW), "line 3 of YearPredictionMSD.txt has 0 numbers, not 91"),
        (archive(b"<html>moved</html>"), "line 1 of YearPredictionMSD.txt has 1 numbers, not 91"),
        (archive(*[ROW] * 3), "has 3 lines, not 4"),
        (archive(*[ROW] * 5), "has more than 4 lines"),
        (archive(ROW, name="other.txt"), r"no member 'YearPredictionMSD.txt'"),
        (WHOLE[: len(WHOLE) // 2], "no archive, or is damaged"),
        (WHOLE.replace(WHOLE[60:90], bytes(30)), "no archive, or is damaged"),
        (b"<html>moved</html>", "no archive, or is damaged"),
    ],
)
def test_another_file_is_one_clear_line(content, message):
    with pytest.raises(DataError, match=message) as caught:
        formats.year_zip([content], {"rows": 4})
    assert "\n" not in str(caught.value)


def test_text_that_unpacks_beyond_the_cap_is_refused_even_as_one_line(monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 1092)  # the size of the table
    for rows in ([ROW] * 3, [bytes(2000)]):
        with pytest.raises(DataError, match="unpacks to more than 1,092 bytes"):
            formats.year_zip([archive(*rows)], {"rows": 3})


def test_the_text_is_never_whole_in_memory():
    content = archive(*[ROW.replace(b"1.5", b"-1.2345678")] * 20_000)
    text = 20_000 * 995
    tracemalloc.start()
    raw = formats.year_zip([content], {"rows": 20_000})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert raw.X.nbytes < peak < raw.X.nbytes + text / 8  # X itself is a quarter of the text


def test_the_first_463715_songs_train_and_the_last_51630_test(monkeypatch):
    card = cards.read("year")
    assert splits.sizes(card) == (463_715, 51_630)
    table, content = songs(6)
    monkeypatch.setattr(sources.files, "from_address", lambda address, name, sha256: content)
    source = {**card["sources"][0], "rows": 6}
    dataset = sources.obtain(card, source, mirror=None)
    small = {**card, "splits": {**card["splits"], "train_rows": 4}}
    train, test = splits.indices(small, dataset, 0)
    assert sorted(train) == [0, 1, 2, 3] and test.tolist() == [4, 5]
    np.testing.assert_array_equal(dataset.y, table[:, 0])
