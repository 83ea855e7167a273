"""Draw the picture of the README: a real session in a terminal, as `docs/images/session.svg`.

The commands run in a copy of the sample handbook, under a pseudo-terminal, so the picture shows what a person
sees. POSIX only, because Windows has no pseudo-terminals in the standard library.
"""

from __future__ import annotations

import html
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "session.svg"
WIDTH = 96
_TEXT = re.compile(
    r'(?P<head><text [^>]*?)textLength="(?P<width>[0-9.]+)"(?P<tail>[^>]*>)(?P<text>[^<]+)</text>', re.DOTALL
)
COMMANDS = (
    "likewise index handbook",
    'likewise search --index handbook/.likewise "how do I rotate a signing key" -k 2',
    'likewise search --index handbook/.likewise "特休可以留到什么时候" -k 1',
)


def in_terminal(command: str, folder: Path) -> str:
    """Output of a command that believes it writes to a terminal of `WIDTH` columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "LINES": "40", "TERM": "xterm-256color"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        shlex.split(command),
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:  # Linux reports the closed terminal as an input error
            break
        if not block:
            break
        written += block
    os.close(ours)
    _, notes = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}: {notes.decode()}")
    return (written + notes).decode("utf-8").replace("\r\n", "\n")


def _fitted(match: re.Match[str]) -> str:
    """A text element as wide as its cells: the library counts a Chinese character as one cell, not two."""
    from rich.cells import cell_len

    text = html.unescape(match["text"])
    width = float(match["width"]) / len(text) * cell_len(text)
    return f'{match["head"]}textLength="{width:.4g}"{match["tail"]}{match["text"]}</text>'


def main() -> None:
    """Run the commands and write the picture."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(
            ROOT / "examples" / "handbook", folder / "handbook", ignore=shutil.ignore_patterns(".likewise")
        )
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(in_terminal(command, folder).rstrip()))
            console.print()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    # The format of the library names fonts on somebody's server; the reader's own monospace font does as
    # well.
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    picture = console.export_svg(title="likewise", code_format=plain)
    TARGET.write_text(_TEXT.sub(_fitted, picture), encoding="utf-8")


if __name__ == "__main__":
    main()
