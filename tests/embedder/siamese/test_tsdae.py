"""The decoder of TSDAE against the one that sentence-transformers builds, and what it does in training."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from likewise.embedder.objectives import add_counts
from likewise.embedder.siamese.decoder import DenoisingDecoder, damage
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.embedder.siamese.losses.tsdae import reconstruction
from likewise.embedder.siamese.objective import Siamese, SiameseObjective
from likewise.embedder.siamese.pair_batches import PairExample
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.sources import make_source
from likewise.embedder.siamese.tasks import LOSSES, LossSettings
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TEXTS = [
    "how do I rotate a signing key",
    "key",
    "the quick brown fox jumps over the lazy dog",
    "如何輪換簽署金鑰？",
]


def test_value_and_gradient_are_those_of_the_peer(sentence_model, plain_checkpoint):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss

    folder = sentence_model("bert", "cls")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SentenceTransformer(str(folder), device="cpu").eval()
        peer = DenoisingAutoEncoderLoss(theirs, decoder_name_or_path=str(plain_checkpoint("bert"))).eval()
    ours = load_sentence_model(folder)
    body = ours.model.body
    decoder = DenoisingDecoder(body.config, 32).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for glance, layer in zip(decoder.glances, peer.decoder.bert.encoder.layer, strict=True):
            cross = layer.crossattention
            for mine, their in (
                (glance.value, cross.self.value),
                (glance.output, cross.output.dense),
                (glance.norm, cross.output.LayerNorm),
            ):
                their.weight.add_(0.1 * torch.randn(their.weight.shape, generator=generator))
                mine.weight.copy_(their.weight)
                mine.bias.copy_(their.bias)
        predictions = peer.decoder.cls.predictions
        decoder.head.dense.load_state_dict(predictions.transform.dense.state_dict())
        decoder.head.norm.load_state_dict(predictions.transform.LayerNorm.state_dict())
        decoder.head.bias.copy_(predictions.bias)

    damaged = [text[: len(text) // 2] for text in TEXTS]
    expected = peer([theirs.tokenize(damaged), theirs.tokenize(TEXTS)], None)
    expected.backward()

    table = TokenTable(ours.tokenizer)
    from likewise.embedder.siamese.text_batch import group_texts

    groups, places = group_texts([table.ids(n) for n in table.add(damaged)], pad_id=table.pad_id, packed=True)
    vectors = ours.model.vectors(groups)[torch.from_numpy(places)]
    written = [table.ids(n) for n in table.add(TEXTS)]
    ids = torch.full((len(TEXTS), max(map(len, written))), table.pad_id)
    for row, tokens in zip(ids, written, strict=True):
        row[: len(tokens)] = torch.from_numpy(tokens)
    loss = reconstruction(decoder(body, vectors, ids[:, :-1]), ids[:, 1:], pad_id=table.pad_id).mean()
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    # Tied: these get gradients from encoding and from decoding.
    own = dict(body.named_parameters())
    other = dict(peer.decoder.bert.named_parameters())
    for mine, their in (
        ("embeddings.token.weight", "embeddings.word_embeddings.weight"),
        ("layers.0.ffn.widen.weight", "encoder.layer.0.intermediate.dense.weight"),
        ("layers.1.attention.output.weight", "encoder.layer.1.attention.output.dense.weight"),
    ):
        torch.testing.assert_close(own[mine].grad, other[their].grad, rtol=1e-3, atol=1e-5)
    # What a cross-attention over one vector never uses gets nothing but rounding there.
    unused = peer.decoder.bert.encoder.layer[0].crossattention.self.query.weight.grad
    assert unused.abs().max() < 1e-8


class TestDamage:
    def test_share_and_frame(self):
        ids = np.arange(1000, dtype=np.int32)
        kept = damage(ids, frame=(1, 2), share=0.6, seed=(0, 1))
        assert kept[0] == 0 and kept[-2:].tolist() == [998, 999]
        assert (np.diff(kept) > 0).all() and 0.35 < len(kept) / 1000 < 0.45
        assert np.array_equal(kept, damage(ids, frame=(1, 2), share=0.6, seed=(0, 1)))
        assert not np.array_equal(kept, damage(ids, frame=(1, 2), share=0.6, seed=(1, 1)))

    @pytest.mark.parametrize("length", [2, 3, 4])
    def test_something_stays(self, length):
        ids = np.arange(length, dtype=np.int32)
        for seed in range(20):
            kept = damage(ids, frame=(1, 1), share=0.99, seed=(seed,))
            assert len(kept) >= min(3, length) and kept[0] == 0 and kept[-1] == length - 1


class TestTraining:
    def objective(self, loaded, **settings):
        table = TokenTable(loaded.tokenizer)
        source = make_source(
            PairData("texts", {"anchor": TEXTS}),
            table,
            name="texts",
            kind=LOSSES["tsdae"],
            settings=LossSettings(**settings),
        )
        return source, SiameseObjective([source], table, packed=loaded.model.packed)

    def test_other_words_are_deleted_in_every_epoch(self, plain_checkpoint):
        loaded = load_sentence_model(plain_checkpoint("bert"))
        _, objective = self.objective(loaded)
        rows = [PairExample(0, n) for n in range(4)]
        batches = [objective.prepare(rows, draw=draw) for draw in (0, 0, 1, None, None)]
        seen = [[group.input_ids.tolist() for group in batch.groups] for batch in batches]
        assert seen[0] == seen[1] != seen[2] and seen[3] == seen[4]
        assert all(torch.equal(batch.targets, batches[0].targets) for batch in batches)
        assert batches[0].tokens < (batches[0].targets != 1).sum()

    def test_a_prompt_that_stays_out_of_the_pooling_stays_whole(self, plain_checkpoint):
        loaded = load_sentence_model(plain_checkpoint("bert"))
        table = TokenTable(loaded.tokenizer, skip_prompt=True)
        prompt = "one two three four five: "
        source = make_source(
            PairData("texts", {"anchor": TEXTS}),
            table,
            name="texts",
            kind=LOSSES["tsdae"],
            column_prompts={"anchor": prompt},
        )
        objective = SiameseObjective([source], table, packed=True)
        skipped = loaded.tokenizer.prompt_length(prompt)
        [group] = objective.prepare([PairExample(0, n) for n in range(len(TEXTS))], draw=0).groups
        whole = table.ids(0)[:skipped].tolist()
        assert all(row[:skipped].tolist() == whole for row in group.input_ids)
        assert not group.pooled[:, :skipped].any() and group.pooled[:, skipped].all()

    def test_accumulation_is_exact_over_tokens(self, plain_checkpoint):
        loaded = load_sentence_model(plain_checkpoint("bert"))
        source, objective = self.objective(loaded)
        objective.check_accumulation(2)
        model = Siamese.of(loaded.model, [source], seed=0).eval()

        def gradient(parts):
            model.zero_grad()
            batches = [objective.prepare([PairExample(0, n) for n in part], draw=0) for part in parts]
            totals = add_counts(objective.counts(batch) for batch in batches)
            for batch in batches:
                objective.loss(model, batch).total(totals).backward()
            return loaded.model.body.embeddings.token.weight.grad.clone()

        torch.testing.assert_close(gradient([range(4)]), gradient([[0], [1, 2, 3]]), rtol=1e-4, atol=1e-6)

    def test_other_architectures_are_refused(self, plain_checkpoint):
        loaded = load_sentence_model(plain_checkpoint("mpnet"))
        source, _ = self.objective(loaded)
        with pytest.raises(UsageError, match="of the BERT family"):
            Siamese.of(loaded.model, [source], seed=0)

    @pytest.mark.parametrize("deleted", [0.0, 1.0])
    def test_share_out_of_range(self, deleted):
        with pytest.raises(UsageError, match="deleted tokens"):
            LossSettings(deleted=deleted)
