"""A small index that several modules ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.index.rows import WriteDocument

from .cataloguing import apply


@pytest.fixture
def library(empty_index: Path, make_document: Callable[..., WriteDocument]) -> Path:
    """An index of four documents that differ in all that a filter asks for."""
    apply(
        empty_index,
        make_document("docs/guide.md", ["1"], title="Signing Keys", language="en", mtime_ns=10**18),
        make_document(
            "docs/zh/指南.md", ["2"], title="簽署金鑰", language="zh", metadata={"tags": ["a", "b"]}
        ),
        make_document("notes/todo.TXT", ["3"], metadata={"author": {"name": "Ann"}, "draft": True, "a.b": 3}),
        make_document("/abs/report.pdf", ["4"], title="STRASSE"),
    )
    return empty_index
