"""What every benchmark shares: where the data are, running a process, and printing a table."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("LIKEWISE_DATA", ROOT.parent / "shared" / "data"))
CACHE = ROOT / "benchmarks" / ".cache"


@dataclass(frozen=True)
class Run:
    """One finished process."""

    seconds: float
    peak_mb: float
    stdout: str


def run(command: Sequence[str], *, ok: Sequence[int] = (0,)) -> Run:
    """Run a process to its end and measure wall-clock time and the peak of its resident memory.

    The peak is that of the process or of its largest child, as the kernel reports it.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    stdout = process.stdout.read()
    stderr = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode not in ok:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{stderr}")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB on Linux
    return Run(seconds, usage.ru_maxrss * unit / 2**20, stdout)


def need(*parts: str) -> Path:
    """A path in the data folder; ends the script with a reason where it is absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        sys.exit(f"this benchmark needs {path}; set LIKEWISE_DATA to the folder that holds the data sets")
    return path


def read_jsonl(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Rows of `name`, gzipped or not."""
    plain, zipped = folder / name, folder / f"{name}.gz"
    with (
        gzip.open(zipped, "rt", encoding="utf-8")
        if zipped.exists()
        else plain.open(encoding="utf-8") as lines
    ):
        for line in lines:
            yield json.loads(line)


def corpus_texts(*names: str) -> list[str]:
    """Title and text of every document of the named retrieval sets."""
    return [
        f"{row.get('title', '')}\n\n{row['text']}".strip()
        for name in names
        for row in read_jsonl(need(name), "corpus.jsonl")
    ]


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header, numbers to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print(
            "  ".join(
                text.ljust(width) if not i else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            )
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _cell(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
