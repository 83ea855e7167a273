"""Fixtures that several parts share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of public data sets; tests that need it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LIKEWISE_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set LIKEWISE_DATA to their folder")
    return folder
