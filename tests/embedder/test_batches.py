from __future__ import annotations

import pytest

from likewise.embedder.batches import Feed, FixedBatches, Position, Stage
from likewise.errors import DataError


class Numbered:
    fingerprint = "numbered"

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths

    def length(self, epoch: int) -> int:
        return self.lengths[epoch % len(self.lengths)]

    def batch(self, epoch: int, index: int) -> list[tuple[int, int]]:
        if index >= self.length(epoch):
            raise IndexError(index)
        return [(epoch, index)]


def prepare(examples, draw, progress):
    return (*examples[0], draw, progress)


def read(feed: Feed, count: int, progress: float = 0.0, **limits) -> list[tuple[int, int]]:
    places = feed.take(count, progress=progress, **limits)
    return [batch[:2] for batch in feed.deliver(places, progress=progress, next_progress=progress)]


def test_batches_come_in_order_over_epochs_of_different_length():
    feed = Feed(Numbered(3, 2), prepare)
    assert read(feed, 4) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert read(feed, 3) == [(1, 1), (2, 0), (2, 1)]
    assert feed.epochs == 2 + 2 / 3
    feed.close()


@pytest.mark.parametrize("world", [1, 2, 3])
def test_processes_share_every_step_without_overlap(world):
    whole = Feed(Numbered(5), prepare)
    feeds = [Feed(Numbered(5), prepare, rank=rank, world=world) for rank in range(world)]
    for count in (3, 4, 3, 5):
        shares = [read(feed, count) for feed in feeds]
        expected = read(whole, count)
        assert sorted(batch for share in shares for batch in share) == sorted(expected)
        assert [feed.position for feed in feeds] == [whole.position] * world
    for feed in (whole, *feeds):
        feed.close()


def test_what_was_prepared_ahead_for_another_progress_is_not_used():
    feed = Feed(Numbered(9), prepare)
    list(feed.deliver(feed.take(1, progress=0.0), progress=0.0, next_progress=0.1))
    [batch] = feed.deliver(feed.take(1, progress=0.5), progress=0.5, next_progress=0.6)
    assert batch == (0, 1, 0, 0.5)
    feed.close()


def test_an_end_in_the_middle_of_a_step():
    feed = Feed(Numbered(3), prepare)
    assert read(feed, 2, until_epoch=1) == [(0, 0), (0, 1)]
    assert read(feed, 2, until_epoch=1) == [(0, 2)]
    assert read(feed, 2, until_epoch=1) == []
    feed.close()


def test_stages_and_a_position_to_go_on_from():
    def stages():
        return [Stage(0.5, Numbered(2)), Stage(1.0, Numbered(4))]

    feed = Feed(stages(), prepare)
    assert read(feed, 3) == [(0, 0), (0, 1), (1, 0)]
    assert read(feed, 1, progress=0.5) == [(0, 0)]
    assert feed.position == Position(stage=1, epoch=0, index=1, epochs=1.5)
    again = Feed(stages(), prepare)
    again.position = feed.position
    assert read(again, 2, progress=0.6) == read(feed, 2, progress=0.6) == [(0, 1), (0, 2)]
    feed.close(), again.close()


def test_an_error_of_the_data_reaches_the_loop():
    class Broken(Numbered):
        def batch(self, epoch, index):
            raise OSError("disk gone")

    feed = Feed(Broken(2), prepare)
    with pytest.raises(OSError, match="disk gone"):
        read(feed, 1)
    feed.close()


def test_nothing_to_read():
    with pytest.raises(DataError, match="holds no batch"):
        Feed(Numbered(0), prepare)
    with pytest.raises(DataError, match="at least one example"):
        FixedBatches([], size=2)


def test_fixed_batches():
    batches = FixedBatches([1, 2, 3], size=2)
    assert batches.length(7) == 2
    assert [batches.batch(0, 0), batches.batch(5, 1)] == [[1, 2], [3]]
    assert batches.fingerprint != FixedBatches([1, 2, 3], size=3).fingerprint
