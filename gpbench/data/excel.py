"""Tables in workbooks of Excel (.xlsx, .xls) and OpenDocument (.ods)."""

import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Sequence

from gpbench import limits
from gpbench.data import archives
from gpbench.data.lines import Cells, of_rows
from gpbench.errors import DataError, listed, require


def read(content: bytes, sheet: str | None, skip: int | Sequence[int]) -> Cells:
    """Reads the rows of a sheet, by default the first."""
    mend = "pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
    require(importlib.util.find_spec("python_calamine"), f"a workbook needs python-calamine: {mend}")
    if zipfile.is_zipfile(io.BytesIO(content)):
        with archives.parsing("a readable workbook"), zipfile.ZipFile(io.BytesIO(content)) as archive:
            archives.require_memory(4 * sum(member.file_size for member in archive.infolist()), content)
    most = limits.memory(archives.size_of(content), archives.LARGEST)
    command = [sys.executable, "-P", "-m", "gpbench.data.workbook", str(most), sheet or ""]
    modules = os.pathsep.join(filter(None, sys.path))  # with -P no others, which may lie beside the table
    ended = subprocess.run(command, input=content, capture_output=True, env={**os.environ, "PYTHONPATH": modules})
    if ended.returncode == -signal.SIGABRT or b"MemoryError" in ended.stderr:
        archives.require_memory(most + 1, content)
    require(ended.returncode >= 0, f"not a readable workbook: its reader ended by signal {-ended.returncode}")
    if ended.returncode:
        line = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DataError(f"not a readable workbook: {line.rpartition(': ')[2][:200]}")
    rows, cells = ended.stdout.count(b"\n"), ended.stdout.count(b'"') // 2
    archives.require_memory(archives.memory_of_rows(rows, cells) + archives.TEXT * cells + len(ended.stdout), content)
    facts, *table = map(json.loads, ended.stdout.splitlines())
    names = facts["sheets"]
    require(sheet is None or sheet in names, f"no sheet {sheet!r}; the file has {', '.join(names)}")
    hidden, merged, others = facts["hidden"], facts["merged"], listed(names[1:]) if sheet is None else ""
    notes = {
        f"{hidden:,} rows of the sheet are hidden, as by a filter, and read like the others": hidden,
        f"merged cells ({listed(merged, 3)}): the first has the value, and the others are empty": merged,
        "errors are read as empty cells, and hidden rows and merged cells are not said, as of .xlsx": facts["unread"],
        f"the file has other sheets: `sheet` names one of {others}": others,
    }
    return of_rows(table, skip, is_sheet=True)._replace(notes=tuple(note for note, is_so in notes.items() if is_so))
