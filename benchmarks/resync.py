"""What a second `likewise index` costs: nothing changed, and one file changed, over 527 Markdown files."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from _measure import need, run, table


def main() -> None:
    likewise = str(Path(sys.executable).parent / "likewise")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "docs"
        shutil.copytree(need("docs-fastapi"), folder)
        first = run([likewise, "index", str(folder), "--json"])
        unchanged = [run([likewise, "index", str(folder), "--json"]) for _ in range(10)]
        page = folder / "en" / "docs" / "tutorial" / "first-steps.md"
        page = page if page.exists() else next(folder.rglob("first-steps.md"))
        text = page.read_text(encoding="utf-8")
        page.write_text(text.rstrip() + "\n\nOne more sentence at the end.\n", encoding="utf-8")
        changed = run([likewise, "index", str(folder), "--json"])
    rows = []
    for label, result, seconds in (
        ("first run", first, first.seconds),
        ("nothing changed (median of 10)", unchanged[-1], statistics.median(r.seconds for r in unchanged)),
        ("one sentence added to one file", changed, changed.seconds),
    ):
        report = json.loads(result.stdout)
        rows.append([label, seconds, report["embedded"], report["reused"], result.peak_mb])
    table("whole process", ["", "seconds", "passages embedded", "vectors reused", "peak MB"], rows)


if __name__ == "__main__":
    main()
