"""Small files of a stranger's that would fill the memory, or take hours: each is made in a folder, in a moment."""

import gzip
import inspect
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import savemat
from servers import serving

_TEXT = "x" * 10**6


def packed(write: Callable, *args, **options) -> bytes:
    file = io.BytesIO()
    write(file, *args, **options)
    return file.getvalue()


def gz(start: bytes, block: bytes, count: int) -> bytes:
    """A gzip file of a block that stands very often, from members of 16 MB."""
    times = -(-(2**24) // len(block))
    return gzip.compress(start) + gzip.compress(block * times, 9) * (count // times)


def parquet(rows: int, **columns: pa.Array) -> bytes:
    """A Parquet file in which a table stands as often as makes so many rows."""
    table, file = pa.table(columns), io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(max(1, rows // len(table))):
            writer.write_table(table)
    return file.getvalue()


def forged(rows: int) -> bytes:
    """A Parquet file of two pages of so many rows, whose footer says that they are ten."""
    table, file = pa.table(dict.fromkeys("ay", pa.array(np.zeros(rows)))), io.BytesIO()
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    if "max_rows_per_page" in inspect.signature(pq.write_table).parameters:
        options["max_rows_per_page"] = rows
    pq.write_table(table, file, row_group_size=rows, data_page_size=2**31 - 1, **options)
    content, group = file.getvalue(), pq.read_metadata(file).row_group(0)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    for number, other in ((rows, 10), (group.total_byte_size, 160), (group.column(0).total_uncompressed_size, 80)):
        before, after = (b"".join(bytes([2 * n >> 7 * k & 127 | 128]) for k in range(5)) for n in (number, other))
        length = -(-(2 * number).bit_length() // 7)
        last = lambda digits: digits[: length - 1] + bytes([digits[length - 1] & 127])  # noqa: B023
        assert last(before) in footer
        footer = footer.replace(last(before), last(after))
    return content[:start] + footer


def arrow(**columns: pa.Array) -> bytes:
    table, file = pa.table(columns), io.BytesIO()
    with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return file.getvalue()


def same(text: str, rows: int) -> pa.Array:
    """A text in many rows, which stands once in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


_NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_NAMES = "".join(f'<c r="{cell}1" t="inlineStr"><is><t>{name}</t></is></c>' for cell, name in (("A", "a"), ("B", "y")))
_SHEETS = '<sheets><sheet name="s" sheetId="1" r:id="r"/></sheets>'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def excel(rows: str = "", **parts: str) -> bytes:
    """A workbook of one sheet, with the columns a and y, these rows, and other files."""
    first = f'<row r="1">{_NAMES}</row>'
    kinds = {"xl/workbook.xml": "sheet.main", "xl/worksheets/sheet1.xml": "worksheet"}
    kinds |= {f"xl/{name}.xml": name for name in parts}
    types = "".join(f'<Override PartName="/{name}" ContentType="{_KIND}.{kind}+xml"/>' for name, kind in kinds.items())
    contents = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": _related("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": _related("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook {_NS} xmlns:r="{_OFFICE}">{_SHEETS}</workbook>',
        "xl/worksheets/sheet1.xml": f"<worksheet {_NS}><sheetData>{first}{rows}</sheetData></worksheet>",
    }
    return zipped(contents | {f"xl/{name}.xml": content for name, content in parts.items()})


def _related(kind: str, target: str) -> str:
    relation = f'<Relationship Id="r" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{relation}</Relationships>'


_OPEN = "".join(f' xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in ("office", "table", "text"))


def ods(*rows: Sequence[str]) -> bytes:
    """A workbook of OpenDocument with these cells in its sheet s."""
    table = "".join(f"<table:table-row>{''.join(cells)}</table:table-row>" for cells in rows)
    body = f'<office:spreadsheet><table:table table:name="s">{table}</table:table></office:spreadsheet>'
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    content = f"<office:document-content{_OPEN}><office:body>{body}</office:body></office:document-content>"
    return zipped({"mimetype": kind, "META-INF/manifest.xml": "<manifest/>", "content.xml": content})


def zipped(contents: Mapping[str, str | bytes]) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(mode: str, content: bytes, name: str = "a") -> bytes:
    """A tar file with one member, packed as the mode says."""

    def write(file: io.BytesIO) -> None:
        with tarfile.open(fileobj=file, mode=mode) as archive:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))

    return packed(write)


def _cells(cell: str, rows: range) -> str:
    return "".join(f'<row r="{k}"><c r="{cell}{k}"><v>1</v></c></row>' for k in rows)


_FORMULAS = "".join(f'<row r="{k}"><c r="{c}{k}"><f>1</f></c></row>' for c, k in (("XFD", 2), ("A", 20_000)))
_ZEROS = pa.array(np.zeros(10**6))
_ONE = '<table:table-cell office:value-type="float" office:value="1"/>'
_TEXTS = pa.array([_TEXT] * 30)
_LIST = pa.ListArray.from_arrays(pa.array([0, 10**6], pa.int32()), _ZEROS)
_RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array([1.5]))
_LONG, _COLUMNS = _TEXT.encode(), b"".join(b",%d" % k for k in range(999))
_CSV = (b"a,y\n", b"0,0\n")
_MEMORY = "bytes of memory, and .* are the most for its size: save it as csv"
_UNPACKS = "unpacks to more than"

TABLES: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "far.xlsx": (lambda: excel(_cells("B", range(2**20, 2**20 + 1))), _MEMORY),
    "beyond.xlsx": (lambda: excel(_cells("A", range(10**12, 10**12 + 1))), _MEMORY),
    "wide.xlsx": (lambda: excel(_cells("XFD", range(2, 5000))), _MEMORY),
    "values.xlsx": (lambda: excel(f'<row r="2"><c r="A2">{"<v/>" * 3 * 10**6}</c></row>'), _MEMORY),
    "text.xlsx": (lambda: excel(sharedStrings=f"<sst {_NS}><si><t>\U0001f600{_TEXT * 60}</t></si></sst>"), _MEMORY),
    "formulas.xlsx": (lambda: excel(_FORMULAS), _MEMORY),
    "part.xlsx": (lambda: excel(other="x" * 2**27), _MEMORY),
    "rows.ods": (lambda: ods(*[[_ONE] * 100] * 40000), _MEMORY),
    "dictionary.parquet": (lambda: parquet(3000, a=same(_TEXT, 3000), y=_ZEROS[:3000]), _MEMORY),
    "plain.parquet": (lambda: parquet(600, a=_TEXTS, y=_ZEROS[:30]), _MEMORY),
    "fixed.parquet": (lambda: parquet(600, a=_TEXTS.cast("binary").cast(pa.binary(10**6)), y=_ZEROS[:30]), _MEMORY),
    "rows.parquet": (lambda: parquet(10**7, a=_ZEROS, y=_ZEROS), _MEMORY),
    "forged.parquet": (lambda: forged(10**7), _MEMORY),
    "list.parquet": (lambda: parquet(50, a=_LIST, y=_ZEROS[:1]), "no inputs; left out, since a cell is no number or"),
    "dictionary.feather": (lambda: arrow(a=same(_TEXT, 3000), y=_ZEROS[:3000]), _MEMORY),
    "runs.feather": (lambda: arrow(a=_RUNS, y=_RUNS), r"no column is of numbers or texts: a \(run_end_encoded"),
    "nulls.feather": (lambda: arrow(a=pa.nulls(10**9), y=pa.nulls(10**9)), _MEMORY),
    "cell.feather": (lambda: arrow(a=pa.array([_TEXT * 100]), y=_ZEROS[:1]), _MEMORY),
    "rows.csv.gz": (lambda: gz(*_CSV, 15 * 10**6), _MEMORY),
    "gigabyte.csv.gz": (lambda: gz(*_CSV, 3 * 10**8), _UNPACKS),
    "twice.csv.gz": (lambda: gzip.compress(gz(*_CSV, 3 * 10**8)), _UNPACKS),
    "label.csv": (lambda: b"a,y\n1,%s\n%s" % (_LONG, b"1,u\n2,v\n" * 1500), "the target has 3,001 texts, one of"),
    "header.csv": (lambda: b"%s,%sy\n%s1\n" % (_TEXT.encode(), b"a," * 999, b"1," * 1000), "the header has 'a' more"),
    "index.svm": (lambda: b"1 200000000:1\n2 1:1\n", "a sparse file of 20 bytes has 400,000,000 cells"),
}
"""Tables by file name: their content, and the line that refuses them."""


def arrays(**shapes: tuple[int, ...]) -> bytes:
    """An .npz file of bytes that are 0."""
    return packed(np.savez_compressed, **{name: np.zeros(shape, np.uint8) for name, shape in shapes.items()})


def _texts_of_rows() -> bytes:
    return parquet(3000, a=same(_TEXT, 3000), y=_ZEROS[:3000])


def _rows(count: int, form: bytes) -> bytes:
    return b"a,y\n" + b"".join(form % (k, k) for k in range(count))


_MATLAB = {"x": np.zeros((10**6, 12)), "y": np.zeros(10**6)}
CARDS: Mapping[str, tuple[Callable[[], bytes], dict, str]] = {
    "large.npz": (lambda: arrays(X=(10**6, 100), y=(10**6,)), {"reader": "npz"}, "unpacks to 101,.*: store it without"),
    "wide.npz": (lambda: arrays(X=(600, 10**5), y=(600,)), {"reader": "npz"}, _MEMORY),
    "bits.npz": (lambda: arrays(bits=(10**6, 40), y=(10**6,)), {"reader": "fingerprints_npz", "bits": 320}, _MEMORY),
    "x.mat": (lambda: packed(savemat, _MATLAB, do_compression=True), {"reader": "mat", "matrix": "x"}, _UNPACKS),
    "levels.csv": (lambda: _rows(16000, b"l%d,%d\n"), {"encode": {"a": "onehot"}}, "16,000 levels in 16,000 rows"),
    "folds.csv": (lambda: _rows(30000, b"%d,%d\n"), {"split": "a"}, "30,000 folds in 30,000 rows"),
    "splits.csv": (lambda: _rows(3, b"%d,%d\n"), {"split_file": "long.csv"}, "the table has 3,001 texts, one of them"),
    "rows.parquet": (
        lambda: parquet(10**7, a=_ZEROS, y=_ZEROS),
        {"reader": "mapped"},
        "unpacks to 160,.*: save it as .npy",
    ),
    "text.parquet": (_texts_of_rows, {"reader": "mapped"}, "column 'a' is not of numbers: leave it out"),
    "member.zip": (lambda: zipped({"a.csv.gz": gz(*_CSV, 3 * 10**8)}), {"member": "a.csv.gz"}, _UNPACKS),
}
"""Tables that need a card by file name: their content, what its source says, and the line that refuses them."""


def _predictions(rows: int, **more: pa.Array) -> bytes:
    names = ("row", "target", "log_prob", "mean", "variance")
    return parquet(rows, **dict.fromkeys(names, _ZEROS[: min(rows, 10**6)]) | more)


_SAME, _STATES = same(_TEXT, 3000), {f"state/{k}": (6 * 10**6,) for k in range(3)}
_PREDICT = ("predict", "--data", "rows.csv", "--no-header")
RECORDS: Mapping[str, tuple[str, Callable[[], bytes], Sequence[str], str]] = {
    "rows": ("predictions.parquet", lambda: _predictions(2 * 10**7), ["show"], "unpacks to 800,000,000 bytes"),
    "texts": ("predictions.parquet", lambda: _predictions(3000, text=_SAME), ["show"], "column text is not of numbers"),
    "lists": ("predictions.parquet", lambda: _predictions(1, mean=_LIST), ["show"], "column mean is not of numbers"),
    "trace": ("trace.npz", lambda: arrays(step=(10**8,)), ["plot", "--kind", "learning"], "unpacks to 100,000,"),
    "state": ("state.npz", lambda: arrays(**{"state/0": (10**8,)}), _PREDICT, "its state is of another version"),
    "states": ("state.npz", lambda: arrays(**_STATES), _PREDICT, "its state is of another version"),
}
"""Files of a saved run by title: their names, their content, the verb that reads them, and its line."""


@contextmanager
def served() -> Iterator[str]:
    """The address of files that have no end: what is sent is zeros, packed by gzip or not, with its length or not."""

    def answer(handler) -> None:
        handler.send_response(200)
        if "packed" in handler.path:
            handler.send_header("Content-Encoding", "gzip")
        if "stated" in handler.path:
            handler.send_header("Content-Length", str(10**9))
        handler.end_headers()
        block = gzip.compress(b"0,0\n" * 2**22) if "packed" in handler.path else b"0,0\n" * 2**18
        with suppress(OSError):
            for _ in range(1000):
                handler.wfile.write(block)

    with serving(answer) as address:
        yield address
