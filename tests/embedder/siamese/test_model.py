"""The model in memory, and `Encoder` and sentence-transformers on what it saved: the same vectors."""

from __future__ import annotations

import json
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise import Encoder
from likewise.embedder.prompts import Prompts
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.embedder.siamese.losses.cached import encode_in_parts
from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.siamese.saving import save_sentence_model
from likewise.embedder.siamese.text_batch import group_texts, plan_groups
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import EncoderError, UsageError

TEXTS = [
    "How do I rotate a signing key?",
    "key",
    "",
    "如何輪換簽署金鑰？敏捷的棕色狐狸跳过懒狗。",
    "The quick brown fox jumps over the lazy dog. " * 9,
    "key",
]


def encode(loaded, texts, role="passage"):
    table = TokenTable(loaded.tokenizer, skip_prompt=not loaded.spec.include_prompt)
    return loaded.model.encode(table, table.add(texts, prompt=loaded.spec.prompts.of(role)))


def peer(folder: Path):
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "mpnet", "modernbert"])
def test_dropout_can_be_turned_off(plain_checkpoint, tmp_path, architecture):
    def trained_like(dropout):
        loaded = load_sentence_model(plain_checkpoint(architecture), dropout=dropout)
        table = TokenTable(loaded.tokenizer, skip_prompt=False)
        token_ids = [table.ids(number) for number in table.add(TEXTS, prompt="")]
        groups, _ = group_texts(token_ids, pad_id=table.pad_id, packed=loaded.model.packed)
        torch.manual_seed(0)
        with torch.no_grad():
            now = loaded.model.train().vectors(groups)
            later = loaded.model.eval().vectors(groups)
        return loaded, float((now - later).abs().max())

    loaded, apart = trained_like(0.0)
    assert apart == 0
    assert trained_like(0.3)[1] > 1e-3
    # It is of the run and not of the model.
    save_sentence_model(loaded.model, loaded.spec, tmp_path)
    saved, before = (
        json.loads((folder / "config.json").read_text("utf-8"))
        for folder in (tmp_path, plain_checkpoint(architecture))
    )
    assert {k: v for k, v in saved.items() if "dropout" in k} == {
        k: v for k, v in before.items() if "dropout" in k
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("architecture", "pooling", "dense", "packed"),
    [
        ("bert", "mean", None, True),
        ("bert", "cls", 8, True),
        ("roberta", "max", None, True),
        ("distilbert", "mean_sqrt_len_tokens", None, True),
        ("albert", "weightedmean", None, True),
        ("xlm-roberta", "lasttoken", None, False),
        ("bert", "cls+mean", None, True),
        ("bert", "mean+cls", None, True),
        ("mpnet", "mean", 8, False),
        ("modernbert", "cls", None, False),
    ],
)
def test_saved_vectors_are_the_same_everywhere(
    plain_checkpoint, tmp_path, architecture, pooling, dense, packed
):
    prompts = Prompts("query: ", "passage: ")
    loaded = load_sentence_model(
        plain_checkpoint(architecture), pooling=pooling, dense=dense, prompts=prompts
    )
    assert loaded.model.packed is packed
    expected = encode(loaded, TEXTS)
    assert expected.shape == (6, dense or 32 * (1 + pooling.count("+"))) and expected.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)
    save_sentence_model(loaded.model, loaded.spec, tmp_path)

    ours = Encoder.load(tmp_path, runtime="torch")
    assert ours.prompts == prompts and ours.max_tokens == loaded.spec.max_tokens
    np.testing.assert_allclose(ours.encode_passages(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(ours.encode_queries(TEXTS), encode(loaded, TEXTS, "query"), atol=1e-6)
    theirs = peer(tmp_path)
    np.testing.assert_allclose(theirs.encode_document(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(theirs.encode_query(TEXTS), encode(loaded, TEXTS, "query"), atol=1e-6)

    again = load_sentence_model(tmp_path)
    np.testing.assert_allclose(encode(again, TEXTS), expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_prompt_can_stay_out_of_the_pooling(sentence_model):
    folder = sentence_model(
        "bert", include_prompt=False, prompts={"query": "query: ", "document": "a longer prompt: "}
    )
    loaded = load_sentence_model(folder)
    np.testing.assert_allclose(
        encode(loaded, TEXTS), Encoder.load(folder, runtime="torch").encode_passages(TEXTS), atol=1e-6
    )


def test_the_default_encoder_is_the_same(tmp_path):
    loaded = load_sentence_model()
    expected = Encoder.load(runtime="torch").encode_passages(TEXTS)
    np.testing.assert_allclose(encode(loaded, TEXTS), expected, atol=1e-6)
    save_sentence_model(loaded.model, loaded.spec, tmp_path)
    np.testing.assert_allclose(peer(tmp_path).encode(TEXTS), expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestGroups:
    def test_packed_and_padded_agree(self, plain_checkpoint):
        from likewise.embedder.runtimes.torch import load_model

        loaded = load_sentence_model(plain_checkpoint("bert"))
        padded = SentenceModel(load_model(loaded.spec).transformer, ("mean",), [], dimension=32).eval()
        table = TokenTable(loaded.tokenizer)
        rows = [table.ids(number) for number in table.add(TEXTS)]
        found = []
        for model in (loaded.model, padded):
            groups, places = group_texts(rows, pad_id=1, packed=model.packed, limit=64)
            assert len(groups) > 1
            with torch.no_grad():
                found.append(model.vectors(groups)[torch.from_numpy(places)])
        torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("packed", [True, False])
    def test_every_text_is_in_one_group_and_limits_hold(self, packed):
        lengths = np.random.default_rng(0).integers(1, 200, 300).tolist()
        plan = plan_groups(lengths, packed=packed, limit=1000)
        assert sorted(at for group in plan for at in group) == list(range(300))
        for group in plan:
            members = [lengths[at] for at in group]
            assert members == sorted(members, reverse=True)
            assert (sum(members) if packed else members[0] * len(members)) <= 1000

    def test_padding_is_little(self):
        lengths = np.random.default_rng(0).integers(10, 300, 256).tolist()
        plan = plan_groups(lengths, packed=False)
        padded = sum(lengths[group[0]] * len(group) for group in plan)
        assert padded < 1.2 * sum(lengths)
        assert len(plan) < 20

    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_cached_gradients_are_the_direct_ones(self, plain_checkpoint, dropout):
        model = load_sentence_model(plain_checkpoint("bert")).model.train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
        table = TokenTable(load_sentence_model(plain_checkpoint("bert")).tokenizer)
        rows = [
            table.ids(number) for number in table.add([f"{text} {n}" for text in TEXTS for n in range(5)])
        ]
        groups, _ = group_texts(rows, pad_id=1, packed=True, limit=100)
        assert len(groups) > 5
        gradients = []
        for cached in (False, True):
            model.zero_grad()
            torch.manual_seed(3)
            vectors = torch.nn.functional.normalize(model.vectors(groups, cached=cached), dim=-1)
            (20 * vectors @ vectors.T).logsumexp(dim=1).sum().backward()
            gradients.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
        assert gradients[0].keys() == gradients[1].keys() and len(gradients[0]) > 20
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-5, atol=1e-5)


class Remembering(torch.nn.Module):
    """An encoder that knows how many of its activations are alive."""

    def __init__(self):
        super().__init__()
        self.widen, self.narrow = torch.nn.Linear(8, 64), torch.nn.Linear(64, 4)
        self.made: list[weakref.ref[torch.Tensor]] = []
        self.most = 0

    def forward(self, part):
        hidden = self.widen(part).tanh()
        self.made.append(weakref.ref(hidden))
        self.most = max(self.most, sum(tensor() is not None for tensor in self.made))
        return self.narrow(hidden)


def test_cached_parts_never_have_their_activations_at_once():
    """A batch of 1,024 in parts of 32, in the memory of 32: activations of one part at a time."""
    torch.manual_seed(0)
    texts = torch.randn(1024, 8)
    found = {}
    for cached in (True, False):
        torch.manual_seed(1)
        encoder = Remembering()
        parts = texts.split(32)
        vectors = encode_in_parts(encoder, parts) if cached else torch.cat([encoder(part) for part in parts])
        multiple_negatives_ranking(vectors[:512], vectors[512:]).mean().backward()
        found[cached] = (encoder.most, encoder.widen.weight.grad)
    assert found[False][0] == 32 and found[True][0] <= 2
    assert found[False][1].abs().max() > 1e-3
    torch.testing.assert_close(found[True][1], found[False][1], rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestFreezing:
    @pytest.mark.parametrize("architecture", ["bert", "mpnet"])
    def test_lower_layers_get_no_gradient(self, plain_checkpoint, architecture):
        loaded = load_sentence_model(plain_checkpoint(architecture))
        loaded.model.freeze(1)
        table = TokenTable(loaded.tokenizer)
        numbers = table.add(TEXTS)
        groups, _ = group_texts(
            [table.ids(n) for n in numbers], pad_id=table.pad_id, packed=loaded.model.packed
        )
        loaded.model.vectors(groups).sum().backward()
        with_gradient = {n for n, p in loaded.model.named_parameters() if p.grad is not None}
        assert with_gradient and all("embeddings" not in n for n in with_gradient)
        assert not any(".layers.0." in n or ".layer.0." in n for n in with_gradient)
        assert any(".layers.1." in n or ".layer.1." in n for n in with_gradient)

    @pytest.mark.parametrize("layers", [-1, 2, 7])
    def test_as_many_as_there_are(self, plain_checkpoint, layers):
        with pytest.raises(UsageError, match="0 to 1 layers to freeze"):
            load_sentence_model(plain_checkpoint("bert")).model.freeze(layers)


@pytest.mark.parametrize("name", ["hash", "hash:32"])
def test_an_encoder_without_weights_is_refused(name):
    with pytest.raises(EncoderError, match="has no weights to train"):
        load_sentence_model(name)


def test_parts_that_cannot_be_trained_are_refused(sentence_model):
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    with pytest.raises(EncoderError, match="cannot train parts"):
        load_sentence_model(sentence_model("bert", more=[LayerNorm(32)]))


class TestTokenTable:
    def test_counts_what_was_cut(self, plain_checkpoint):
        table = TokenTable(load_sentence_model(plain_checkpoint("bert")).tokenizer)
        numbers = table.add(["key", "key " * 200, " key "])
        assert [table.truncated[n] for n in numbers] == [False, True, False]
        assert len(table.ids(int(numbers[1]))) == 64
        assert table.identity[numbers[0]] == table.identity[numbers[2]] and numbers[0] != numbers[2]

    def test_fingerprint_knows_the_order(self, plain_checkpoint):
        tokenizer = load_sentence_model(plain_checkpoint("bert")).tokenizer
        tables = [TokenTable(tokenizer) for _ in range(3)]
        for table, texts in zip(tables, (["a", "b"], ["a", "b", "a"], ["b", "a"]), strict=True):
            table.add(texts)
        assert tables[0].fingerprint == tables[1].fingerprint != tables[2].fingerprint
