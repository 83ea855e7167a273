"""Folders and indexes of real documents that several benchmarks use, built once."""

from __future__ import annotations

import shutil
from pathlib import Path

from _measure import CACHE, corpus_texts, need

from likewise import Index

ABSTRACTS = ("cranfield", "cisi", "scifact", "lisa")


def abstracts(count: int) -> Path:
    """A folder with `count` abstracts of four collections, one text file each, a hundred to a folder."""
    folder = CACHE / f"abstracts-{count}"
    if not folder.exists():
        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        texts = [text for text in corpus_texts(*ABSTRACTS) if text][:count]
        for number, text in enumerate(texts):
            path = draft / f"{number // 100:03d}" / f"{number:05d}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        draft.rename(folder)
    return folder


def abstracts_index(count: int) -> Path:
    """The index of `abstracts(count)`, made with the default encoder."""
    folder = abstracts(count)
    with Index.open(folder / ".likewise") as index:
        index.sync([folder])
    return folder / ".likewise"


def documentation(copies: int) -> Path:
    """The English documentation of FastAPI, `copies` times, every copy with a line of its own per file.

    The line keeps copies from being recognised as the same text, which would cost nothing to index again.
    """
    folder = CACHE / f"documentation-{copies}"
    if not folder.exists():
        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        source = need("docs-fastapi", "en")
        for copy in range(copies):
            for path in sorted(source.rglob("*.md")):
                target = draft / f"copy{copy}" / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = path.read_text(encoding="utf-8")
                if copy:
                    text = "\n\n".join(
                        f"{block} ({copy})" if block.strip() else block for block in text.split("\n\n")
                    )
                target.write_text(text, encoding="utf-8")
        draft.rename(folder)
    return folder
