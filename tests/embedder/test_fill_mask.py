from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel

from likewise.embedder.fill_mask import MaskFiller
from likewise.embedder.mlm_evaluation import evaluate_mlm, ratio
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.errors import DataError, EncoderError, EncoderNotFound, UsageError

TEXTS = ["the fox sees the dog", "the dog sees the old fox", "金鑰每年輪替", "old keys, new keys"] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose answer is known: every mask is most likely a fox, then a dog."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_vocabulary(TEXTS, VocabularySettings(size=70, shortfall="accept"))
    model = BertForMaskedLM(_shape(tokenizer))
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.zero_()  # tied: all scores are the bias
        model.cls.predictions.bias.fill_(0.0)
        model.cls.predictions.bias[tokenizer.convert_tokens_to_ids("fox")] = 5.0
        model.cls.predictions.bias[tokenizer.convert_tokens_to_ids("##s")] = 3.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _shape(tokenizer):
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
    )


def test_the_likeliest_come_first_with_their_probabilities(folder):
    [fills] = MaskFiller(folder).fill("the old [MASK]", k=2)
    vocabulary = len(AutoTokenizer.from_pretrained(folder))
    total = torch.exp(torch.tensor([5.0, 3.0])).sum() + vocabulary - 2
    assert [fill.token for fill in fills] == ["fox", "s"]
    assert fills[0].probability == pytest.approx(float(torch.exp(torch.tensor(5.0)) / total), rel=1e-4)
    assert fills[0].text == "the old fox"
    assert fills[1].text == "the olds"  # a continuation sticks to its word


def test_each_mask_by_itself(folder):
    masks = MaskFiller(folder).fill("[MASK] sees [MASK]", k=1)
    assert [fills[0].text for fills in masks] == ["fox sees [MASK]", "[MASK] sees fox"]


def test_probabilities_of_all_tokens_add_up(folder):
    [fills] = MaskFiller(folder).fill("金[MASK]", k=10**6)
    assert sum(fill.probability for fill in fills) == pytest.approx(1.0, abs=1e-5)


def test_another_mask_token_is_understood(tmp_path):
    tokenizer = train_vocabulary(TEXTS * 4, VocabularySettings(algorithm="bpe", size=280, shortfall="accept"))
    assert tokenizer.mask_token == "<mask>"
    BertForMaskedLM(_shape(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    filler = MaskFiller(tmp_path)
    assert len(filler.fill("a [MASK]")) == len(filler.fill("a <mask>")) == 1


class TestErrors:
    def test_no_mask(self, folder):
        with pytest.raises(UsageError, match=r"with \[MASK\], found none"):
            MaskFiller(folder).fill("no mask here")

    def test_too_long(self, folder):
        with pytest.raises(UsageError, match="at most 12 tokens, found 22"):
            MaskFiller(folder).fill("fox " * 19 + "[MASK]")

    def test_no_head(self, tmp_path):
        tokenizer = train_vocabulary(TEXTS, VocabularySettings(size=70, shortfall="accept"))
        BertModel(_shape(tokenizer)).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(EncoderError, match="trained head for masked tokens") as caught:
            MaskFiller(tmp_path)
        assert "--init" in caught.value.remedy

    def test_no_mask_token(self, folder, tmp_path):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.mask_token = None
        BertForMaskedLM(_shape(tokenizer)).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(DataError, match="a tokenizer with a mask token"):
            MaskFiller(tmp_path)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(EncoderNotFound):
            MaskFiller(tmp_path / "none", offline=True)


class TestEvaluation:
    def test_interval_by_hand(self):
        import numpy as np

        # Ratio 6/12; residuals 1 - 2, 2 - 2, 3 - 2; error sqrt(3/2 * 2) / 12.
        found = ratio(np.array([1.0, 2.0, 3.0]), np.array([4.0, 4.0, 4.0]))
        assert found.value == 0.5
        assert found.high - found.value == pytest.approx(1.96 * 3**0.5 / 12)
        assert found.low == pytest.approx(1.0 - found.high)

    def test_one_unit_has_no_interval(self):
        import numpy as np

        found = ratio(np.array([1.0]), np.array([4.0]))
        assert (found.value, found.low, found.high) == (0.25, -float("inf"), float("inf"))

    def test_a_model_that_knows_nothing_but_the_bias(self, folder):
        from likewise.embedder.batches import FixedBatches
        from likewise.embedder.sequences import Frame
        from likewise.embedder.starting_point import from_encoder

        tokenizer = AutoTokenizer.from_pretrained(folder)
        start = from_encoder(str(folder), tokenizer, seed=0, offline=True)
        frame = Frame.of(tokenizer)
        fox = tokenizer.convert_tokens_to_ids("fox")
        ids = torch.tensor([fox, fox, fox, fox, fox, fox]).numpy()
        examples = [frame.example(ids, key=key) for key in range(30)]
        found = evaluate_mlm(start.model, start.objective, FixedBatches(examples, size=10))
        assert found.masked_accuracy.value == 1.0  # every hidden token is a fox
        probability = MaskFiller(folder).fill("[MASK]", k=1)[0][0].probability
        assert found.perplexity.value == pytest.approx(1 / probability, rel=1e-3)
        again = evaluate_mlm(start.model, start.objective, FixedBatches(examples, size=10))
        assert again == found
