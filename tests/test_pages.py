"""The sizes of Parquet's pages by their headers are those that its footer says, where this is true."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpbench import pages

TABLE = pa.table(
    {
        "text": [None, "x", "a longer text"] * 1000,
        "real": np.random.default_rng(0).normal(size=3000),
        "flag": [True, False, None] * 1000,
        "list": [[1, 2], [], None] * 1000,
    }
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "none"},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "data_page_size": 100},
        {"row_group_size": 700, "write_page_checksum": True},
        {"write_statistics": False, "write_page_index": True},
    ],
)
def test_the_pages_unpack_to_what_the_footer_says_less_their_headers(options):
    pq.write_table(TABLE, file := io.BytesIO(), **options)
    facts = pq.read_metadata(file)
    groups = [facts.row_group(k) for k in range(facts.num_row_groups)]
    stated = sum(group.total_byte_size for group in groups)
    size = pages.unpacked_size(file.getvalue(), facts)
    headers = 120 * (stated // 90 if "data_page_size" in options else 12 * len(groups))
    assert stated - headers < size < stated and size > stated / 3


@pytest.mark.parametrize("damage", [bytes(40), b"\xff" * 40, b"\x1c" * 40, b"\x19" * 40, b""])
def test_what_is_no_header_is_an_error(damage):
    pq.write_table(TABLE, file := io.BytesIO())
    content = file.getvalue()
    damaged = content[:4] + damage + content[4 + len(damage) :] if damage else content[:100]
    with pytest.raises((ValueError, LookupError, RecursionError)):
        pages.unpacked_size(damaged, pq.read_metadata(file))
