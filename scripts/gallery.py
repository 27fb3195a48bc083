"""Draws the pictures of docs/gallery.md again, each by the command under it, into docs/gallery/.

`python scripts/gallery.py [NAME ...]`; runs are trained into a folder that GPBENCH_RESULTS names, or a temporary one.
"""

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from gpbench.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gallery.md"
WIDTH, COLOURS = 900, 128


def commands() -> dict[str, str]:
    """The command under each picture of the page, by the name of the picture."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    return dict(re.findall(r"!\[[^]]*\]\(gallery/(\w+)\.png\)\n\n```\ngpbench (.*)\n```", text))


def draw(name: str, command: str, results: Path) -> None:
    """Runs a command and keeps the PNG file that it wrote, in a small size."""
    before = {file: file.stat().st_mtime_ns for file in results.rglob("*.png")}
    if main(shlex.split(command)) != 0:
        sys.exit(f"{name}: gpbench {command} failed")
    (drawn,) = (file for file in results.rglob("*.png") if before.get(file) != file.stat().st_mtime_ns)
    title = PngInfo()
    title.add_text("Title", Image.open(drawn).info["Title"])  # which a test compares with the records
    picture = Image.open(drawn).convert("RGB")
    if picture.width > WIDTH:
        picture = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
    file = PAGE.parent / "gallery" / f"{name}.png"
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(file, optimize=True, pnginfo=title)
    print(f"{file}: {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    folder = Path(os.environ.setdefault("GPBENCH_RESULTS", tempfile.mkdtemp())).absolute()
    os.environ["GPBENCH_RESULTS"] = str(folder)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for name, command in commands().items():
        if name in sys.argv[1:] or len(sys.argv) == 1:
            draw(name, command, folder)
