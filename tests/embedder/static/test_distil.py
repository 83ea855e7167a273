"""Static students: their steps against written-out arithmetic, and the whole way on a tiny teacher."""

from __future__ import annotations

import json
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.encoder import Encoder
from likewise.embedder.events import Progress
from likewise.embedder.runtimes.base import unit_rows
from likewise.embedder.static.distil import StaticSettings, distil_static
from likewise.embedder.static.refine import (
    ShuffledTexts,
    StaticDistillation,
    TextVectors,
    TokenTable,
    agreement,
)
from likewise.embedder.static.table import principal_components, without_common_direction
from likewise.embedder.static.texts import passages_and_sentences, sample_texts
from likewise.embedder.static.tokens import static_tokens
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import DataError, UsageError

from ...tiny_bert import save_tiny_bert

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WORDS = ["key", "lock", "door", "vault", "金", "鑰", "safe", "chain", "bolt", "gate"]


def some_texts(count: int = 120) -> list[str]:
    generator = np.random.default_rng(1)
    return [f"the {' '.join(generator.choice(WORDS, 5))} number {n} unlocks un42" for n in range(count)]


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory) -> Path:
    """A tiny BERT whose vocabulary spells "unlocks" in pieces."""
    from tokenizers import BertWordPieceTokenizer

    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "[unused0]",
        "the",
        "number",
        "un",
        "##lock",
        "##s",
    ]
    pieces += [*WORDS, *"0123456789", *(f"##{digit}" for digit in "0123456789")]
    words = BertWordPieceTokenizer({piece: n for n, piece in enumerate(pieces)})
    return save_tiny_bert(
        tmp_path_factory.mktemp("teacher"), words, width=32, layers=2, max_tokens=24, noise=0.1
    )


def fit(**changes) -> TrainingSettings:
    return TrainingSettings(**({"epochs": 8, "learning_rate": 1e-2, "log_every": 1} | changes))


class TestTable:
    def test_principal_components_are_those_of_the_singular_values(self):
        vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32) @ np.diag(
            np.arange(1, 9.0)
        )
        vectors = vectors.astype(np.float32)
        project = principal_components(vectors, 3)
        centred = vectors - vectors.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        np.testing.assert_allclose(np.abs(project(vectors)), np.abs(left[:, :3] * sizes[:3]), rtol=1e-3)
        largest = np.abs(project.components).argmax(axis=0)
        assert (project.components[largest, range(3)] > 0).all()

    def test_taking_the_direction_from_tokens_takes_it_from_texts(self):
        generator = np.random.default_rng(0)
        table = (generator.normal(size=(20, 5)) + 2).astype(np.float32)
        rows = [generator.integers(20, size=6) for _ in range(30)]
        texts = np.stack([table[row].mean(axis=0) for row in rows])
        found = without_common_direction(table, texts)
        common = np.linalg.svd(texts / np.linalg.norm(texts, axis=1, keepdims=True))[2][0]
        expected = texts - np.outer(texts @ common, common)
        means = np.stack([found[row].mean(axis=0) for row in rows])
        np.testing.assert_allclose(means, expected, atol=1e-5)


class TestTexts:
    def test_chinese_sentences(self):
        found = list(passages_and_sentences("簽署金鑰每年輪換一次並且記錄。請先詢問金鑰的負責人員再說。"))
        assert found == [
            "簽署金鑰每年輪換一次並且記錄。 請先詢問金鑰的負責人員再說。",
            "簽署金鑰每年輪換一次並且記錄。",
            "請先詢問金鑰的負責人員再說。",
        ]

    @pytest.mark.parametrize("document", ["", "\n\n", "  \n\n \n\n", "\n\nToo short.\n\n"])
    def test_nothing_to_learn_from(self, document):
        assert list(passages_and_sentences(document)) == []

    def test_long_paragraphs_become_several_passages(self):
        found = list(passages_and_sentences(" ".join(f"This is sentence number {n}." for n in range(100))))
        passages = [text for text in found if text.count("sentence") > 1]
        assert len(passages) == 3 and max(map(len, passages)) < 1100
        assert len(found) == 103

    def test_lines_broken_at_a_width_are_no_sentences(self):
        found = list(passages_and_sentences("The signing key\nrotates every\n year. Ask first, please."))
        assert found == [
            "The signing key rotates every year. Ask first, please.",
            "The signing key rotates every year.",
            "Ask first, please.",
        ]

    def test_long_texts_are_drawn_more_often(self):
        texts = [f"{n} short" for n in range(900)] + [f"{n} long " * 10 for n in range(100)]
        drawn = sample_texts(texts, 100)
        # They are a tenth of the texts and have half of the characters.
        assert 30 < sum("long" in text for text in drawn) < 60
        assert 3 < sum("long" in text for text in drawn[:20]) < 17

    def test_a_sample_does_not_depend_on_the_order(self):
        texts = some_texts()
        first = sample_texts(texts, 30)
        assert first == sample_texts([*reversed(texts), *texts], 30) and len(set(first)) == 30
        assert first != sample_texts(texts, 30, seed=1)
        assert sorted(sample_texts(texts, 500)) == sorted(texts)


class TestTokens:
    def test_words_that_are_spelt_in_pieces(self, wordpiece):
        encoder = Encoder.load(wordpiece, runtime="torch")
        tokens = static_tokens(encoder.tokenizer, [*some_texts(), "rare rare rare"], words=5)
        # Numbers are spelt in pieces too, but each of them stands in a single text.
        assert tokens.words == 2 and len(tokens) == 41 + 2
        [row] = tokens.rows(["un42 unlocks"])
        assert row.tolist() == [41, 42]
        assert tokens.spelling[41] == (8, 35, 33) and tokens.spelling[42] == (8, 9, 10)
        assert static_tokens(encoder.tokenizer, some_texts(), words=1).words == 1
        # Special tokens and unused ones mean nothing; a word that the teacher does not know is none.
        assert tokens.spelling[:6] == ((),) * 6 and tokens.spelling[6] == (6,)
        assert tokens.rows(["rare"])[0].tolist() == [1]
        assert static_tokens(encoder.tokenizer).words == 0

    def test_other_tokenizers_take_no_words(self, sentence_model):
        encoder = Encoder.load(sentence_model("bert"), runtime="torch")
        with pytest.raises(UsageError, match="the teacher's is BPE"):
            static_tokens(encoder.tokenizer, some_texts(), words=5)
        assert len(static_tokens(encoder.tokenizer)) == encoder.tokenizer.vocabulary_size


class TestRefine:
    def texts(self, count=40):
        generator = np.random.default_rng(0)
        rows = [generator.integers(1, 12, size=4).astype(np.int32) for _ in range(count)]
        return TextVectors(rows, unit_rows(generator.normal(size=(count, 6)).astype(np.float32)))

    def test_loss_by_hand(self):
        texts = self.texts(3)
        table = np.random.default_rng(1).normal(size=(12, 6)).astype(np.float32)
        objective = StaticDistillation(texts, contrast=0.5, scale=2.0)
        batch = objective.prepare([2, 0], draw=0)
        loss = objective.loss(TokenTable(table), batch)
        vectors = unit_rows(np.stack([table[texts.rows[n]].mean(axis=0) for n in (2, 0)]))
        cosines = vectors @ texts.targets[[2, 0]].T
        ranking = np.log(np.exp(2 * cosines).sum(axis=1)) - 2 * np.diag(cosines)
        expected = (1 - np.diag(cosines) + 0.5 * ranking).sum()
        assert loss.terms[0].sum.item() == pytest.approx(expected, rel=1e-5)
        assert objective.counts(batch) == {"loss": 2} and batch.tokens == 8

    def test_agreement_is_the_mean_cosine(self):
        texts = self.texts(5)
        table = np.random.default_rng(1).normal(size=(12, 6)).astype(np.float32)
        vectors = unit_rows(np.stack([table[row].mean(axis=0) for row in texts.rows]))
        assert agreement(table, texts) == pytest.approx(
            (vectors * texts.targets).sum(axis=1).mean(), abs=1e-6
        )

    def test_every_epoch_has_another_order(self):
        batches = ShuffledTexts(self.texts(), size=7, seed=0)
        assert batches.length(0) == 5
        rows = [[n for at in range(5) for n in batches.batch(epoch, at)] for epoch in range(2)]
        assert rows[0] != rows[1] and len(set(rows[0])) == 35
        assert batches.fingerprint != ShuffledTexts(self.texts(), size=7, seed=1).fingerprint


class TestDistil:
    @pytest.mark.parametrize("teacher", ["wordpiece", "byte-level"])
    def test_without_a_corpus(self, wordpiece, sentence_model, tmp_path, teacher):
        source = wordpiece if teacher == "wordpiece" else sentence_model("roberta", "cls")
        result = distil_static(str(source), tmp_path / "m", StaticSettings(dimension=16))
        assert result.dimension == 16 and result.agreement is None and result.texts == 0
        self.check_peer(tmp_path / "m")

    def test_with_one(self, wordpiece, tmp_path):
        seen = []
        result = distil_static(
            str(wordpiece),
            tmp_path / "m",
            StaticSettings(dimension=16, words=2, training=fit(), batch_size=16),
            texts=some_texts(),
            progress=lambda *told: seen.append(told),
        )
        before, after = result.agreement
        assert after > before + 0.1 and result.words == 2 and result.texts == 120
        assert ("asking the teacher about texts", 120, 120) in seen
        encoder = self.check_peer(tmp_path / "m")
        assert encoder.max_tokens == 24
        assert encoder.encode_tokens([[41]]).shape == (1, 16)
        card = (tmp_path / "m" / "README.md").read_text("utf-8")
        assert "static-embeddings" in card and "SIF by counts" in card
        assert json.loads((tmp_path / "m" / "metrics.json").read_text())["agreement"] == [before, after]
        # The teacher is not asked again.
        seen.clear()
        again = distil_static(
            str(wordpiece),
            tmp_path / "n",
            StaticSettings(dimension=16, words=2, training=fit(), batch_size=16),
            texts=some_texts(),
            progress=lambda *told: seen.append(told),
        )
        assert seen == [] and again.agreement == result.agreement
        vectors = [Encoder.load(tmp_path / name).encode_passages(WORDS) for name in "mn"]
        assert np.array_equal(*vectors)

    def check_peer(self, folder):
        from sentence_transformers import SentenceTransformer

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = SentenceTransformer(str(folder), device="cpu").encode(
                [*WORDS, "key " * 90, *some_texts(5)]
            )
        encoder = Encoder.load(folder)
        ours = encoder.encode_passages([*WORDS, "key " * 90, *some_texts(5)])
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        return encoder

    def test_an_interrupted_fit_ends_the_same(self, wordpiece, tmp_path):
        settings = StaticSettings(dimension=16, training=fit(), batch_size=16)

        def stop(event):
            if isinstance(event, Progress) and event.step == 9:
                signal.raise_signal(signal.SIGINT)

        whole = distil_static(str(wordpiece), tmp_path / "whole", settings, texts=some_texts())
        first = distil_static(str(wordpiece), tmp_path / "m", settings, texts=some_texts(), listeners=[stop])
        assert first.status == "interrupted" and not (tmp_path / "m" / "modules.json").exists()
        second = distil_static(str(wordpiece), tmp_path / "m", settings, texts=some_texts())
        assert second.agreement == whole.agreement
        vectors = [Encoder.load(tmp_path / name).encode_passages(WORDS) for name in ("whole", "m")]
        assert np.array_equal(*vectors)

    def test_counting_alone(self, wordpiece, tmp_path):
        result = distil_static(
            str(wordpiece), tmp_path / "m", StaticSettings(dimension=16), texts=some_texts()
        )
        assert result.training is None and result.agreement[0] == result.agreement[1]

    def test_a_folder_that_held_another_model(self, wordpiece, tmp_path):
        (tmp_path / "m" / "1_Pooling").mkdir(parents=True)
        (tmp_path / "m" / "config.json").write_text("{}")
        distil_static(str(wordpiece), tmp_path / "m", StaticSettings(dimension=8))
        assert not (tmp_path / "m" / "config.json").exists() and not (tmp_path / "m" / "1_Pooling").exists()
        static = tmp_path / "m"
        with pytest.raises(UsageError, match="nothing to distil"):
            distil_static(str(static), tmp_path / "n", StaticSettings())
        with pytest.raises(UsageError, match="nothing to distil"):
            distil_static("hash", tmp_path / "n", StaticSettings())

    def test_too_little_text(self, wordpiece, tmp_path):
        with pytest.raises(DataError, match="at least two texts with tokens, found 1"):
            distil_static(str(wordpiece), tmp_path / "m", StaticSettings(), texts=["the only one"])

    @pytest.mark.parametrize(
        "changes", [{"dimension": 0}, {"words": -1}, {"texts": 1}, {"held_out": 0.0}, {"contrast": -1.0}]
    )
    def test_settings_that_make_no_sense(self, changes):
        with pytest.raises(UsageError, match="expected"):
            StaticSettings(**changes)
