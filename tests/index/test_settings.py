from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import UsageError
from likewise.index.settings import ChunkSettings, ChunkSize, SyncSettings


def test_defaults_use_most_of_a_short_encoder_and_not_all_of_a_long_one() -> None:
    assert ChunkSettings().sizes(254) == ChunkSize(target=203, most=253, limit=254, overlap=0)
    assert ChunkSettings().sizes(510) == ChunkSize(target=400, most=500, limit=510, overlap=0)
    assert ChunkSettings().sizes(8190) == ChunkSize(target=400, most=500, limit=8190, overlap=0)


@given(limit=st.integers(1, 10_000), target=st.none() | st.integers(16, 8192), overlap=st.integers(0, 8))
def test_sizes_are_in_order(limit: int, target: int | None, overlap: int) -> None:
    settings = ChunkSettings(target_tokens=target, overlap_tokens=overlap)
    if target is not None and target > limit:
        with pytest.raises(UsageError, match=f"takes {limit}"):
            settings.sizes(limit)
        return
    size = settings.sizes(limit)
    assert 1 <= size.target <= size.most <= size.limit == limit
    assert 0 <= size.overlap <= size.target // 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"target": 100}, "unknown chunk setting 'target'"),
        ({"target_tokens": 15}, "target_tokens must be between 16 and 8192, not 15"),
        ({"target_tokens": 8193}, "between 16 and 8192"),
        ({"target_tokens": "100"}, "target_tokens must be a whole number, not '100'"),
        ({"target_tokens": 100.0}, "whole number"),
        ({"target_tokens": True}, "whole number"),
        ({"target_tokens": 100, "overlap_tokens": 51}, "overlap_tokens must be between 0 and 50, not 51"),
        ({"overlap_tokens": -1}, "between 0 and 200"),
        ({"heading_context": 1}, "heading_context must be true or false, not 1"),
    ],
)
def test_wrong_chunk_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ChunkSettings.from_json(values)  # type: ignore[arg-type]


def test_chunk_settings_survive_json() -> None:
    settings = ChunkSettings(target_tokens=120, overlap_tokens=20, heading_context=False)
    assert ChunkSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"group_passages": 0}, "group_passages must be between 1 and 100000, not 0"),
        ({"group_passages": 1.5}, "group_passages must be a whole number"),
        ({"commit_seconds": -1}, "commit_seconds must be between 0 and 3600"),
        ({"commit_seconds": float("nan")}, "commit_seconds must be between"),
        ({"commit_seconds": "5"}, "commit_seconds must be a number"),
    ],
)
def test_wrong_sync_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SyncSettings(**values)  # type: ignore[arg-type]
