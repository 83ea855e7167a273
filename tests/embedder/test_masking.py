from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.embedder.examples import Example
from likewise.embedder.masking import (
    NOT_A_TARGET,
    Masking,
    choose_spans,
    choose_tokens,
    choose_words,
    corrupt,
    generator_for,
    geometric_odds,
    mask_example,
)
from likewise.embedder.masking_vocabulary import MaskingVocabulary, segmented_words
from likewise.errors import DataError, UsageError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS = [*SPECIAL, *(f"w{at}" for at in range(95)), *(f"##p{at}" for at in range(50))]
VOCABULARY = MaskingVocabulary.from_tokens(TOKENS, mask_token="[MASK]", special_tokens=SPECIAL)
MASK = 4


def example(length: int, key: int = 0, *, pieces: bool = False) -> Example:
    """[CLS] text [SEP], the text drawn from the ordinary tokens."""
    rng = np.random.default_rng(key)
    text = rng.integers(5, 150 if pieces else 100, size=length)
    special = np.array([True, *[False] * length, True])
    return Example(np.array([2, *text, 3]), special, key)


def test_512_tokens_give_about_77_targets_and_80_10_10() -> None:
    """Bounds are five standard deviations of the binomial distribution around the expected counts."""
    draws, fates = [], np.zeros(3)
    for draw in range(200):
        given_ = example(512, key=draw)
        masked = mask_example(given_, Masking(), VOCABULARY, draw=0)
        chosen = masked.labels != NOT_A_TARGET
        draws.append(int(chosen.sum()))
        seen, original = masked.ids[chosen], given_.ids[chosen]
        fates += [(seen == MASK).sum(), ((seen != MASK) & (seen != original)).sum(), (seen == original).sum()]
    assert set(draws) <= {76, 77}
    assert np.mean(draws) == pytest.approx(0.15 * 512, abs=0.2)
    total = fates.sum()
    # A random token is the original one once in 145 times.
    expected = np.array([0.8, 0.1 * 144 / 145, 0.1 + 0.1 / 145])
    spread = 5 * np.sqrt(total * expected * (1 - expected))
    assert (np.abs(fates - total * expected) < spread).all(), fates / total


def test_every_ordinary_token_is_equally_likely_and_random_tokens_are_ordinary() -> None:
    hits = np.zeros(42)
    strangers = np.zeros(len(TOKENS))
    text = example(40)
    for draw in range(3000):
        masked = mask_example(text, Masking(masked=0.0, random=1.0), VOCABULARY, draw=draw)
        chosen = masked.labels != NOT_A_TARGET
        hits += chosen
        np.add.at(strangers, masked.ids[chosen], 1)
    assert hits[0] == hits[-1] == 0
    assert np.abs(hits[1:-1] - 450).max() < 5 * np.sqrt(3000 * 0.15 * 0.85)
    assert strangers[:5].sum() == 0
    mean = strangers[5:].mean()
    assert np.abs(strangers[5:] - mean).max() < 5 * np.sqrt(mean)


@given(
    st.lists(st.booleans(), max_size=60),
    st.floats(0, 1),
    st.integers(0, 2**32),
    st.sampled_from(["token", "word", "span"]),
)
@settings(max_examples=150, deadline=None)
def test_labels_and_ids_hold_together(special: list[bool], rate: float, seed: int, unit: str) -> None:
    rng = np.random.default_rng(seed)
    text = Example(rng.integers(5, 150, size=len(special)), np.array(special, dtype=bool), seed)
    masked = mask_example(text, Masking(rate=rate, unit=unit, seed=seed), VOCABULARY, draw=1)
    chosen = masked.labels != NOT_A_TARGET
    assert not (chosen & text.special).any()
    np.testing.assert_array_equal(masked.labels[chosen], text.ids[chosen])
    np.testing.assert_array_equal(masked.ids[~chosen], text.ids[~chosen])
    ordinary = int((~text.special).sum())
    longest_word = 60
    assert chosen.sum() <= ordinary * rate + (1 if unit == "token" else longest_word)
    if unit == "token":
        assert chosen.sum() >= int(ordinary * rate)
    if rate == 1.0:
        assert chosen.sum() == ordinary
    if rate == 0.0:
        assert chosen.sum() == 0


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_edges(unit: str) -> None:
    masking = Masking(unit=unit)
    empty = Example(np.array([], dtype=np.int64), np.array([], dtype=bool))
    assert mask_example(empty, masking, VOCABULARY, draw=0).labels.shape == (0,)
    special_only = Example(np.array([2, 3]), np.array([True, True]))
    masked = mask_example(special_only, replace(masking, rate=1.0), VOCABULARY, draw=0)
    assert masked.ids.tolist() == [2, 3]
    assert masked.labels.tolist() == [-100, -100]
    # One token is chosen 15 times in 100, as often as each token of a long text.
    one = example(1)
    chosen = sum(
        mask_example(one, masking, VOCABULARY, draw=draw).labels[1] != NOT_A_TARGET for draw in range(2000)
    )
    assert abs(chosen - 300) < 5 * np.sqrt(2000 * 0.15 * 0.85)


def test_input_is_not_changed() -> None:
    text = example(30)
    before = text.ids.copy()
    mask_example(text, Masking(rate=1.0), VOCABULARY, draw=0)
    np.testing.assert_array_equal(text.ids, before)


def test_dynamic_masks_differ_static_ones_repeat_and_evaluation_is_fixed() -> None:
    text = example(200)

    def labels(masking: Masking, draw: int | None) -> list[int]:
        return mask_example(text, masking, VOCABULARY, draw=draw).labels.tolist()

    dynamic, static = Masking(), Masking(duplicates=10)
    assert len({tuple(labels(dynamic, draw)) for draw in range(30)}) == 30
    assert len({tuple(labels(static, draw)) for draw in range(30)}) == 10
    assert labels(static, 3) == labels(static, 13)
    assert labels(dynamic, None) == labels(static, None) == labels(dynamic, None)
    assert labels(dynamic, None) != labels(dynamic, 0)
    assert labels(replace(dynamic, seed=1), None) != labels(dynamic, None)
    other = replace_key(text, 1)
    assert mask_example(other, dynamic, VOCABULARY, draw=None).labels.tolist() != labels(dynamic, None)


def replace_key(text: Example, key: int) -> Example:
    return Example(text.ids, text.special, key)


def test_generator_is_the_same_everywhere() -> None:
    """Fixed numbers: a change here would change the masks of every run that is resumed."""
    assert (
        generator_for(0, 0, 0).integers(1000, size=4).tolist()
        == generator_for(0, 0, 0).integers(1000, size=4).tolist()
    )
    seen = {
        tuple(generator_for(seed, key, draw).integers(2**62, size=2).tolist())
        for seed in (0, 1, -1)
        for key in (0, 1, 2**63)
        for draw in (None, 0, 1)
    }
    assert len(seen) == 27


def test_rate_schedule_and_evaluation_rate() -> None:
    masking = Masking(rate=0.3, final_rate=0.1)
    text = example(1000)

    def share(progress: float, draw: int | None = 0) -> float:
        labels = mask_example(text, masking, VOCABULARY, draw=draw, progress=progress).labels
        return (labels != NOT_A_TARGET).sum() / 1000

    assert share(0.0) == pytest.approx(0.3, abs=0.002)
    assert share(0.5) == pytest.approx(0.2, abs=0.002)
    assert share(1.0) == share(7.0) == pytest.approx(0.1, abs=0.002)
    assert share(0.0, None) == pytest.approx(0.15, abs=0.002)


def test_word_groups_of_wordpiece_bpe_and_sentencepiece() -> None:
    ids = np.array([2, 10, 120, 121, 11, 3, 122, 12, 3])
    special = np.isin(ids, [2, 3])
    assert VOCABULARY.word_numbers(ids, special).tolist() == [-1, 0, 0, 0, 1, -1, 2, 3, -1]
    for mark in "Ġ▁":
        tokens = ["<s>", "<mask>", f"{mark}the", "re", "by", "!"]
        words = MaskingVocabulary.from_tokens(tokens, mask_token="<mask>", special_tokens=["<s>", "<mask>"])
        numbers = words.word_numbers(
            np.array([0, 2, 3, 4, 2, 5, 0]), np.array([1, 0, 0, 0, 0, 0, 1], dtype=bool)
        )
        assert numbers.tolist() == [-1, 0, 0, 0, 1, 1, -1]
    with pytest.raises(DataError, match="marks where words begin"):
        MaskingVocabulary(4, np.arange(5, 9)).word_numbers(ids, special)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_whole_words_are_chosen_whole(seed: int) -> None:
    text = example(120, key=seed, pieces=True)
    words = VOCABULARY.word_numbers(text.ids, text.special)
    chosen = choose_words(words, 0.15, np.random.default_rng(seed))
    for word in range(words.max() + 1):
        assert len(set(chosen[words == word])) == 1
    assert not chosen[words < 0].any()


@pytest.mark.parametrize("unit", ["word", "span"])
def test_words_and_spans_keep_the_rate(unit: str) -> None:
    total = 0
    for key in range(300):
        text = example(128, key=key, pieces=True)
        labels = mask_example(text, Masking(unit=unit), VOCABULARY, draw=0).labels
        total += (labels != NOT_A_TARGET).sum()
    assert total / (300 * 128) == pytest.approx(0.15, abs=0.006)


def test_words_all_too_long_keep_the_rate() -> None:
    """One word of ten tokens: at 15% it is chosen 15 times in 100, whole."""
    words = np.array([-1, *[0] * 10, -1])
    for choose in (choose_words, lambda *a: choose_spans(*a) >= 0):
        counts = [int(choose(words, 0.15, np.random.default_rng(seed)).sum()) for seed in range(2000)]
        assert set(counts) == {0, 10}
        assert abs(sum(counts) / 10 - 300) < 5 * np.sqrt(2000 * 0.15 * 0.85)


def test_spans_have_the_geometric_lengths_and_share_one_fate() -> None:
    """SpanBERT reports a mean of 3.8; the budget and the neighbours of a text cut some spans short."""
    words = np.array([-1, *range(4000), -1])
    lengths: list[int] = []
    for seed in range(20):
        spans = choose_spans(words, 0.05, np.random.default_rng(seed))
        numbers, sizes = np.unique(spans[spans >= 0], return_counts=True)
        lengths += sizes.tolist()
        for number in numbers:
            assert np.ptp(np.flatnonzero(spans == number)) + 1 == (spans == number).sum()
    odds = np.array(geometric_odds())
    found = np.bincount(lengths, minlength=11)[1:]
    expected = odds / odds.sum() * len(lengths)
    assert max(lengths) <= 10
    assert np.abs(found - expected).max() < 6 * np.sqrt(expected.max())
    assert np.mean(lengths) == pytest.approx(3.8, abs=0.35)

    spans = choose_spans(words, 0.15, np.random.default_rng(1))
    ids = np.full(len(words), 7)
    masked = corrupt(ids, spans >= 0, Masking(), VOCABULARY, np.random.default_rng(2), together=spans)
    is_mask = masked.ids == MASK
    for number in np.unique(spans[spans >= 0]):
        assert len(set(is_mask[spans == number])) == 1
    assert is_mask.sum() / (spans >= 0).sum() == pytest.approx(0.8, abs=0.1)


def test_spans_stop_at_special_tokens() -> None:
    words = np.array([-1, 0, 1, 2, -1, 3, 4, 5, -1])
    for seed in range(200):
        spans = choose_spans(words, 0.9, np.random.default_rng(seed), odds=(0.0, 0.0, 1.0))
        assert not set(spans[1:4][spans[1:4] >= 0]) & set(spans[5:8][spans[5:8] >= 0])


def test_spans_of_albert_are_at_most_three_words() -> None:
    words = np.arange(3000)
    spans = choose_spans(words, 0.1, np.random.default_rng(0), odds=(1.0, 1 / 2, 1 / 3))
    sizes = np.bincount(np.unique(spans[spans >= 0], return_counts=True)[1], minlength=4)
    assert len(sizes) == 4
    assert sizes[1] > sizes[2] > sizes[3] > 0


def test_chinese_words_from_a_segmenter_in_both_scripts() -> None:
    lexicon = {"人工", "智能", "資訊", "檢索", "系統"}

    def segmenter(run: str) -> list[str]:
        words, at = [], 0
        while at < len(run):
            size = 2 if run[at : at + 2] in lexicon else 1
            words.append(run[at : at + size])
            at += size
        return words

    tokens = ["[CLS]", "人", "工", "智", "能", "ai", "##s", "資", "訊", "檢", "索", "的", "x", "[SEP]"]
    plain = np.array([-1, 0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, -1])
    expected = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, -1]
    assert segmented_words(tokens, plain, segmenter).tolist() == expected
    assert segmented_words([], np.array([], dtype=np.int64), segmenter).tolist() == []
    with pytest.raises(DataError, match="keeps its text"):
        segmented_words(tokens, plain, lambda run: [run[:1]])


def test_words_of_an_example_go_before_those_of_the_vocabulary() -> None:
    text = Example(
        np.array([2, 10, 11, 12, 13, 3]),
        np.array([True, False, False, False, False, True]),
        words=np.array([-1, 0, 0, 1, 1, -1]),
    )
    for draw in range(50):
        chosen = mask_example(text, Masking(unit="word", rate=0.5), VOCABULARY, draw=draw).labels >= 0
        assert chosen[1:5].tolist() in ([True, True, False, False], [False, False, True, True])


def test_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(DataError, match="a mask token, found None") as caught:
        MaskingVocabulary.from_tokens(["a", "b"], mask_token=None, special_tokens=[])
    assert "recipe gpt" in caught.value.remedy
    with pytest.raises(DataError, match=r"found '\[MASK\]' as"):
        MaskingVocabulary.from_tokens(["a", "b"], mask_token="[MASK]", special_tokens=[])
    with pytest.raises(DataError, match="ordinary tokens, found 5 special"):
        MaskingVocabulary.from_tokens(SPECIAL, mask_token="[MASK]", special_tokens=SPECIAL)


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": -0.1},
        {"rate": 1.1},
        {"final_rate": 2.0},
        {"evaluation_rate": -1.0},
        {"masked": 0.8, "random": 0.3},
        {"unit": "sentence"},
        {"span_odds": ()},
        {"span_odds": (0.0, 0.0)},
        {"span_odds": (1.0, -1.0)},
        {"duplicates": 0},
    ],
)
def test_impossible_settings_are_refused(changes) -> None:
    with pytest.raises(UsageError, match="masking: "):
        Masking(**changes)


def test_exact_numbers_at_rates_without_rounding() -> None:
    special = np.zeros(20, dtype=bool)
    for seed in range(30):
        assert choose_tokens(special, 0.5, np.random.default_rng(seed)).sum() == 10
