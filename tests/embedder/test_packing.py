from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.corpus import CorpusCounts, TokenCorpus
from likewise.embedder.corpus_build import SourceText, build_corpus
from likewise.embedder.packing import CorpusBatches, PlannedBatches, best_fit, cut, fill_in_order, plan_epoch
from likewise.embedder.pair_batches import PairBatches, Sections
from likewise.embedder.sequences import Frame
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.errors import DataError, UsageError

WORDS = ["fox", "dog", "vector", "text", "句", "文"]


def documents():
    rng = np.random.default_rng(3)
    for size in np.concatenate((rng.integers(1, 40, 150), rng.integers(200, 900, 12))):
        words = rng.choice(WORDS, int(size)).tolist()
        yield SourceText(" ".join(f"{word}." if at % 9 == 8 else word for at, word in enumerate(words)))


@pytest.fixture(scope="module")
def tokenizer():
    return train_vocabulary([document.text for document in documents()], VocabularySettings(size=30))


@pytest.fixture(scope="module")
def corpus(tokenizer, tmp_path_factory):
    return build_corpus(documents(), tokenizer, tmp_path_factory.mktemp("packing") / "corpus", held_out=0.05)


def batches_of(corpus, tokenizer, **changes):
    settings = {"length": 64, "tokens_per_batch": 1024} | changes
    return CorpusBatches(corpus, Frame.of(tokenizer), **settings)


class TestCut:
    @given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 17))
    def test_pieces_are_all_tokens_in_order_and_none_too_long(self, sizes, room):
        ends = np.cumsum(sizes)
        bounds = np.stack((ends - sizes, ends), axis=1)
        pieces = cut(bounds, room)
        assert pieces[0, 0] == 0 and pieces[-1, 1] == ends[-1]
        assert (pieces[1:, 0] == pieces[:-1, 1]).all()  # nothing left out, nothing twice
        lengths = pieces[:, 1] - pieces[:, 0]
        assert lengths.min() >= 1 and lengths.max() <= room
        assert set(ends) <= set(pieces[:, 1].tolist())  # no piece crosses a document

    def test_a_short_rest_shares_with_the_piece_before(self):
        assert cut(np.array([[0, 33]]), 16).tolist() == [[0, 16], [16, 24], [24, 33]]

    def test_no_room(self):
        with pytest.raises(UsageError, match="room for at least one token"):
            cut(np.array([[0, 5]]), 0)


class TestPlans:
    @given(
        st.lists(st.integers(1, 30), min_size=1, max_size=200),
        st.sampled_from(["bucketed", "packed"]),
        st.integers(1, 40),
    )
    def test_each_sequence_is_in_exactly_one_batch(self, lengths, order, window):
        lengths = np.array(lengths)
        plan = plan_epoch(lengths, capacity=30, seed=1, epoch=2, order=order, window=window)
        assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
        assert all(lengths[batch].sum() <= 30 for batch in plan)

    @given(st.lists(st.integers(1, 30), min_size=1, max_size=60))
    def test_both_ways_of_filling_keep_to_the_capacity(self, lengths):
        lengths = np.array(lengths)
        for fill in (fill_in_order, best_fit):
            groups = fill(lengths, 30)
            assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
            assert all(0 < lengths[group].sum() <= 30 for group in groups)
        assert len(best_fit(lengths, 30)) >= -(-lengths.sum() // 30)

    @pytest.mark.parametrize("longest", [128, 512])
    def test_packed_batches_are_at_least_99_percent_full(self, longest):
        lengths = np.random.default_rng(0).integers(3, longest + 1, 30_000)
        plan = plan_epoch(lengths, capacity=4096, seed=0, epoch=0, order="packed")
        assert lengths.sum() / (len(plan) * 4096) >= 0.99

    def test_bucketed_batches_hold_similar_lengths(self):
        lengths = np.random.default_rng(0).integers(3, 129, 20_000)
        spreads = {
            order: np.mean(
                [
                    np.ptp(lengths[batch])
                    for batch in plan_epoch(lengths, capacity=4096, seed=0, epoch=0, order=order)
                ]
            )
            for order in ("bucketed", "packed")
        }
        assert spreads["bucketed"] < 5 < 30 < spreads["packed"]

    def test_order_depends_on_seed_and_epoch_alone(self):
        lengths = np.random.default_rng(0).integers(3, 20, 100)

        def plan(seed, epoch):
            found = plan_epoch(lengths, capacity=64, seed=seed, epoch=epoch, order="bucketed")
            return [batch.tolist() for batch in found]

        assert plan(1, 0) == plan(1, 0)
        assert plan(1, 0) != plan(1, 1) and plan(1, 0) != plan(2, 0)

    def test_unknown_order(self):
        with pytest.raises(UsageError, match="bucketed or packed"):
            plan_epoch(np.array([1]), capacity=2, seed=0, epoch=0, order="sorted")

    def test_a_sequence_longer_than_a_batch(self):
        with pytest.raises(UsageError, match="longest sequence of 9 tokens"):
            PlannedBatches(np.array([9, 2]), capacity=8)

    def test_nothing(self):
        with pytest.raises(DataError, match="at least one sequence"):
            PlannedBatches(np.array([], dtype=np.int64), capacity=8)


class TestCorpusBatches:
    @pytest.mark.parametrize("order", ["bucketed", "packed"])
    @pytest.mark.parametrize("held_out", [False, True])
    def test_an_epoch_is_every_token_of_the_part_once(self, corpus, tokenizer, order, held_out):
        batches = batches_of(corpus, tokenizer, order=order, held_out=held_out)
        for epoch in (0, 3):
            examples = [e for index in range(batches.length(epoch)) for e in batches.batch(epoch, index)]
            found = {example.key: example.ids[~example.special].tolist() for example in examples}
            assert len(found) == len(examples)
            joined = [token for key in sorted(found) for token in found[key]]
            expected = [t for a, b in corpus.bounds(held_out=held_out) for t in corpus.tokens[a:b].tolist()]
            assert joined == expected
            assert sum(map(len, examples)) == batches.tokens

    def test_sequences_are_framed_and_short_enough(self, corpus, tokenizer):
        for example in batches_of(corpus, tokenizer).batch(0, 0):
            assert len(example) <= 64
            assert example.ids[0] == tokenizer.cls_token_id and example.ids[-1] == tokenizer.sep_token_id
            assert example.special.tolist() == [True, *[False] * (len(example) - 2), True]

    def test_any_batch_without_reading_those_before(self, corpus, tokenizer):
        read, fresh = batches_of(corpus, tokenizer), batches_of(corpus, tokenizer)
        for index in range(read.length(5)):
            last = read.batch(5, index)
        direct = fresh.batch(5, fresh.length(5) - 1)
        assert [e.ids.tolist() for e in direct] == [e.ids.tolist() for e in last]

    def test_held_out_batches_are_the_same_in_every_epoch(self, corpus, tokenizer):
        batches = batches_of(corpus, tokenizer, held_out=True)
        assert [e.key for e in batches.batch(0, 0)] == [e.key for e in batches.batch(7, 0)]

    def test_fingerprint_tells_settings_apart(self, corpus, tokenizer):
        kinds = [
            {},
            {"length": 32},
            {"tokens_per_batch": 512},
            {"seed": 1},
            {"order": "packed"},
            {"held_out": True},
        ]
        assert len({batches_of(corpus, tokenizer, **kind).fingerprint for kind in kinds}) == len(kinds)

    def test_no_room_for_text(self, corpus, tokenizer):
        with pytest.raises(UsageError, match="more than 2 tokens"):
            batches_of(corpus, tokenizer, length=2)


class TestFrame:
    def test_of_a_tokenizer(self, tokenizer):
        assert Frame.of(tokenizer) == Frame((tokenizer.cls_token_id,), (tokenizer.sep_token_id,))

    def test_without_special_tokens(self):
        class Bare:
            def __call__(self, text, add_special_tokens=True):
                return {"input_ids": [9, 9]}

        assert Frame.of(Bare()) == Frame((), ())


def numbered_corpus(folder, *, documents, held_out):
    """Document d is 40 sentences of 5 tokens that count up from 1000 * d + 10."""
    tokens = np.concatenate([1000 * d + 10 + np.arange(200) for d in range(documents)])
    counts = CorpusCounts(documents, len(held_out), 40 * documents, len(tokens), len(tokens), 0, 0)
    tokens.astype("<u2").tofile(folder / "tokens.bin")
    np.arange(0, len(tokens) + 1, 5, dtype="<i8").tofile(folder / "sentences.bin")
    np.arange(0, 40 * documents + 1, 40, dtype="<i8").tofile(folder / "documents.bin")
    out = np.isin(np.arange(documents), held_out)
    out.astype("u1").tofile(folder / "held-out.bin")
    record = {"format": 1, "fingerprint": "numbers", "dtype": "<u2", "counts": vars(counts)}
    (folder / "corpus.json").write_text(json.dumps(record))
    return TokenCorpus(folder)


class TestPairs:
    def test_sections_are_whole_sentences_of_one_document(self, corpus):
        sections = Sections(corpus, 60)
        found = [ids.tolist() for section in sections[:] for ids in section]
        expected = [ids.tolist() for number in range(len(corpus)) for ids in corpus.sentences_of(number)]
        assert found == expected
        assert sections.lengths.sum() == corpus.counts.tokens
        assert all(length <= 60 or len(sections[at]) == 1 for at, length in enumerate(sections.lengths))

    @pytest.mark.parametrize("kind", ["nsp", "sop"])
    def test_pairs_of_an_epoch(self, corpus, tokenizer, kind):
        batches = PairBatches(
            corpus,
            kind,
            cls_id=tokenizer.cls_token_id,
            sep_id=tokenizer.sep_token_id,
            length=48,
            tokens_per_batch=512,
        )
        examples = [e for index in range(batches.length(0)) for e in batches.batch(0, index)]
        assert all(5 <= len(example) <= 48 for example in examples)
        share = np.mean([example.pair_label for example in examples])
        assert 0.4 < share < 0.6
        assert len({example.key for example in examples}) == len(examples)
        again = [e.ids.tolist() for index in range(batches.length(0)) for e in batches.batch(0, index)]
        assert again == [example.ids.tolist() for example in examples]
        assert [e.ids.tolist() for e in batches.batch(1, 0)] != again[: len(batches.batch(1, 0))]

    @pytest.mark.parametrize("held_out", [False, True])
    def test_what_does_not_follow_is_of_another_document_of_the_same_part(
        self, tokenizer, tmp_path, held_out
    ):
        # Each document is the rising run of numbers of a thousand of its own.
        corpus = numbered_corpus(tmp_path, documents=8, held_out=[1, 4])
        batches = PairBatches(
            corpus, "nsp", cls_id=1, sep_id=2, length=32, tokens_per_batch=64, held_out=held_out
        )
        owners = {True: {1, 4}, False: {0, 2, 3, 5, 6, 7}}[held_out]
        seen = set()
        for epoch in range(4):
            for index in range(batches.length(epoch)):
                for example in batches.batch(epoch, index):
                    first, second = (
                        set((example.ids[(example.segment_ids == text) & ~example.special] // 1000).tolist())
                        for text in (0, 1)
                    )
                    assert first | second <= owners
                    assert (first == second) == (example.pair_label == 0)
                    seen |= first | second
        assert seen == owners

    def test_a_lone_held_out_document_borrows_from_the_rest(self, tmp_path):
        corpus = numbered_corpus(tmp_path, documents=3, held_out=[1])
        batches = PairBatches(
            corpus, "nsp", cls_id=1, sep_id=2, length=32, tokens_per_batch=64, held_out=True
        )
        others = set()
        for index in range(batches.length(0)):
            for example in batches.batch(0, index):
                assert set(example.ids[(example.segment_ids == 0) & ~example.special] // 1000) == {1}
                if example.pair_label == 1:
                    others |= set(
                        (example.ids[(example.segment_ids == 1) & ~example.special] // 1000).tolist()
                    )
        assert others == {0, 2}

    def test_a_corpus_of_one_document_has_nothing_that_does_not_follow(self, tmp_path):
        corpus = numbered_corpus(tmp_path, documents=1, held_out=[])
        batches = PairBatches(corpus, "nsp", cls_id=1, sep_id=2, length=32, tokens_per_batch=64)
        with pytest.raises(DataError, match="at least two documents"):
            for index in range(batches.length(0)):
                batches.batch(0, index)

    def test_no_room_for_a_pair(self, corpus):
        with pytest.raises(UsageError, match="room for a pair of 64"):
            PairBatches(corpus, "sop", cls_id=1, sep_id=2, length=64, tokens_per_batch=63)
