"""Batches and the objective: each text once, masks of false negatives, exact accumulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from likewise.embedder.objectives import add_counts
from likewise.embedder.prompts import Prompts
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.embedder.siamese.objective import Siamese, SiameseObjective
from likewise.embedder.siamese.pair_batches import PairBatches, PairExample
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.sources import excluded, make_source
from likewise.embedder.siamese.tasks import LOSSES, LossSettings
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def loaded(plain_checkpoint):
    return load_sentence_model(plain_checkpoint("bert"))


def source_of(loaded, loss, columns, labels=None, table=None, **options):
    table = TokenTable(loaded.tokenizer) if table is None else table
    data = PairData("pairs", columns, labels)
    return make_source(data, table, name="pairs", kind=LOSSES[loss], **options), table


def examples(rows):
    return [PairExample(0, row) for row in rows]


class TestPrepare:
    def test_each_distinct_text_is_encoded_once(self, loaded):
        columns = {"anchor": ["a", "b", "a", "c"], "positive": ["b", "x", "y", "a"]}
        source, table = source_of(loaded, "ranking", columns)
        objective = SiameseObjective([source], table, packed=True)
        batch = objective.prepare(examples(range(4)), draw=0)
        assert sum(len(group.lengths) for group in batch.groups) == 5  # a b c x y
        laid_out = [
            tuple(row[mask].tolist())
            for group in batch.groups
            for row, mask in zip(group.input_ids, group.mask, strict=True)
        ]
        for column, texts in zip(batch.columns, columns.values(), strict=True):
            expected = [tuple(table.ids(int(n)).tolist()) for n in table.add(texts)]
            assert [laid_out[int(at)] for at in column] == expected

    def test_prompts_go_by_role(self, loaded):
        columns = {"anchor": ["a"] * 2, "positive": ["a", "b"]}
        table = TokenTable(loaded.tokenizer)
        source, _ = source_of(
            loaded, "ranking", columns, table=table, prompts=Prompts("query: ", "passage: ")
        )
        assert len(table) == 3 and source.columns[0, 0] != source.columns[0, 1]
        assert table.identity[source.columns[0, 0]] == table.identity[source.columns[0, 1]]
        own = {"positive": "answer: "}
        other, _ = source_of(loaded, "ranking", columns, table=table, column_prompts=own)
        assert other.columns[0, 1] == table.add(["a"], prompt="answer: ")[0]
        with pytest.raises(UsageError, match="'negative_1'; pairs has anchor, positive"):
            source_of(loaded, "ranking", columns, column_prompts={"negative_1": "x"})

    def test_simcse_encodes_a_text_twice(self, loaded):
        source, table = source_of(loaded, "simcse", {"anchor": ["a", "b", "a"]})
        batch = SiameseObjective([source], table, packed=True).prepare(examples(range(3)), draw=0)
        assert sum(len(group.lengths) for group in batch.groups) == 4
        first, second = batch.columns
        assert first.tolist() != second.tolist() and first[0] == first[2]
        assert batch.excluded.tolist() == [[True, False, True], [False, True, False], [True, False, True]]


class TestFalseNegatives:
    def test_known_positives_and_equal_texts_are_masked(self, loaded):
        columns = {
            "anchor": ["q", "r", "s", "q"],
            "positive": ["p", "q ", "t", "u"],
            "negative_1": ["n", "p", "u", "n"],
        }
        source, table = source_of(loaded, "ranking", columns)
        mask = excluded(source, [0, 1, 2], table.identity)
        # Candidates: p, "q ", t, then n, p, u. Row 3, not in this batch, says that u answers q.
        assert mask.tolist() == [
            [True, True, False, False, True, True],
            [False, True, False, False, False, False],
            [False, False, True, False, False, False],
        ]

    def test_masked_candidates_do_not_push(self, loaded):
        same = {"anchor": ["q1", "q2"], "positive": ["p", "p"]}
        table = TokenTable(loaded.tokenizer)
        source, _ = source_of(loaded, "ranking", same, table=table)
        objective = SiameseObjective([source], table, packed=True)
        batch = objective.prepare(examples([0, 1]), draw=0)
        model = Siamese(loaded.model, [None])
        # p is not known to answer q1 because of q2's row, but it is q1's own positive.
        loss = objective.loss(model, batch)
        assert loss.total().item() == 0.0
        assert loss.metrics["false_negatives"].sum.item() == 2

    @pytest.mark.parametrize("loss", ["ranking", "distillation", "tsdae"])
    def test_a_factor_is_one_of_the_gradient_alone(self, loaded, loss):
        columns = {"anchor": ["q1", "q2"], "positive": ["p1", "p2"]}
        if loss != "ranking":
            del columns["positive"]
        found = {}
        for factor in (1.0, 20.0):
            labels = torch.randn(2, loaded.model.dimension, generator=torch.Generator().manual_seed(0))
            source, table = source_of(
                loaded,
                loss,
                columns,
                labels.numpy() if loss == "distillation" else None,
                settings=LossSettings(factor=factor),
            )
            other = replace(source, name="other")
            model = Siamese.of(loaded.model, [source, other], seed=0).eval()
            objective = SiameseObjective([source, other], table, packed=True)
            loss_of_batch = objective.loss(model, objective.prepare(examples([0, 1]), draw=0))
            loaded.model.zero_grad()
            loss_of_batch.total().backward()
            gradient = loaded.model.body.layers[0].attention.output.weight.grad.clone()
            found[factor] = loss_of_batch.total().item(), gradient, loss_of_batch.metrics["pairs"].sum.item()
        assert found[20.0][0] == pytest.approx(20 * found[1.0][0])
        torch.testing.assert_close(found[20.0][1], 20 * found[1.0][1])
        assert found[20.0][2] == found[1.0][2] > 0


class TestAccumulation:
    @pytest.mark.parametrize(
        "loss", ["triplet", "cosine", "contrastive", "softmax", "margin-mse", "translation"]
    )
    def test_gradient_of_the_parts_is_that_of_the_batch(self, loaded, loss):
        columns = {role: [f"{role} {n}" for n in range(7)] for role in ("anchor", "positive")}
        kind = LOSSES[loss]
        if "negative_1" in kind.roles:
            columns["negative_1"] = [f"other {n}" for n in range(7)]
        labels = {
            "score": np.linspace(0, 1, 7, dtype=np.float32),
            "binary": np.array([1, 0, 0, 1, 0, 1, 1], dtype=np.float32),
            "class": np.array([0, 1, 2, 1, 0, 2, 1]),
            "margins": np.linspace(-1, 1, 7, dtype=np.float32)[:, None],
        }.get(kind.label)
        if kind.teacher:
            labels = np.random.default_rng(0).normal(size=(7, 32)).astype(np.float32)
        source, table = source_of(loaded, loss, columns, labels)
        objective = SiameseObjective([source], table, packed=True)
        objective.check_accumulation(3)
        model = Siamese(loaded.model, [nn.Linear(96, 3) if loss == "softmax" else None])

        def gradients(parts):
            model.zero_grad()
            batches = [objective.prepare(examples(part), draw=0) for part in parts]
            totals = add_counts(objective.counts(batch) for batch in batches)
            for batch in batches:
                objective.loss(model, batch).total(totals).backward()
            return [p.grad.clone() for p in model.parameters() if p.grad is not None]

        whole, parts = gradients([range(7)]), gradients([[0, 1, 2], [3], [4, 5, 6]])
        assert max(gradient.abs().max() for gradient in whole) > 1e-4
        for left, right in zip(whole, parts, strict=True):
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


class TestAgainstPeer:
    @pytest.mark.parametrize("cached", [False, True])
    def test_gradients_of_the_encoder(self, sentence_model, cached):
        """The whole way, text to gradient, against sentence-transformers with its own (cached) loss."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import losses

        folder = sentence_model("bert")
        ours = load_sentence_model(folder)
        theirs = SentenceTransformer(str(folder), device="cpu").eval()
        columns = {
            "anchor": [f"how do I rotate key {n}" for n in range(6)],
            "positive": [f"key {n} " * (n + 1) for n in range(6)],
        }
        source, table = source_of(ours, "ranking", columns)
        objective = SiameseObjective([source], table, packed=True, part_tokens=60 if cached else None)
        model = Siamese(ours.model, [None])
        batch = objective.prepare(examples(range(6)), draw=0)
        assert len(batch.groups) > 1 or not cached
        loss = objective.loss(model, batch).total()
        loss.backward()
        peer = (
            losses.CachedMultipleNegativesRankingLoss(theirs, mini_batch_size=2)
            if cached
            else losses.MultipleNegativesRankingLoss(theirs)
        )
        expected = peer([theirs.tokenize(texts) for texts in columns.values()], None)
        expected.backward()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        own = dict(ours.model.body.named_parameters())
        other = dict(theirs[0].auto_model.named_parameters())
        for mine, their in (
            ("embeddings.token.weight", "embeddings.word_embeddings.weight"),
            ("layers.0.ffn.widen.weight", "encoder.layer.0.intermediate.dense.weight"),
            ("layers.1.attention.output.bias", "encoder.layer.1.attention.output.dense.bias"),
        ):
            torch.testing.assert_close(own[mine].grad, other[their].grad, rtol=1e-4, atol=1e-5)


class TestBatches:
    def sources(self, loaded, rows=50, weights=(1.0,)):
        table = TokenTable(loaded.tokenizer)
        return [
            source_of(
                loaded,
                "ranking",
                {
                    "anchor": [f"a{n} " * (1 + n % 9) for n in range(rows)],
                    "positive": [f"p{n}" for n in range(rows)],
                },
                table=table,
                weight=weight,
            )[0]
            for weight in weights
        ], table

    @pytest.mark.parametrize("bucketed", [True, False])
    def test_an_epoch_has_every_row_once_in_a_new_order(self, loaded, bucketed):
        sources, table = self.sources(loaded)
        batches = PairBatches(sources, table.lengths(), size=7, bucketed=bucketed)
        epochs = [
            [e.row for index in range(batches.length(epoch)) for e in batches.batch(epoch, index)]
            for epoch in range(3)
        ]
        assert all(sorted(rows) == list(range(50)) for rows in epochs)
        assert epochs[0] != epochs[1] != epochs[2]
        # 50 = 7 * 7 + 1: the lone row joined another batch.
        sizes = sorted(len(batches.batch(0, index)) for index in range(batches.length(0)))
        assert sizes == [7, 7, 7, 7, 7, 7, 8]

    def test_batches_are_a_function_of_their_number(self, loaded):
        sources, table = self.sources(loaded)
        first = PairBatches(sources, table.lengths(), size=7, seed=3)
        second = PairBatches(sources, table.lengths(), size=7, seed=3)
        wanted = [(2, 1), (0, 3), (1, 0), (5, 6), (0, 3)]
        expected = {place: second.batch(*place) for place in sorted(set(wanted))}
        assert [first.batch(*place) for place in wanted] == [expected[place] for place in wanted]
        assert first.fingerprint == second.fingerprint
        assert PairBatches(sources, table.lengths(), size=7, seed=4).fingerprint != first.fingerprint
        assert PairBatches(sources, table.lengths(), size=7, seed=4).batch(0, 0) != first.batch(0, 0)

    def test_weights_are_passes(self, loaded):
        sources, table = self.sources(loaded, weights=(2.5, 0.5))
        batches = PairBatches(sources, table.lengths(), size=5, bucketed=False)
        counts = np.zeros((2, 2, 50), dtype=int)
        for epoch in range(2):
            for index in range(batches.length(epoch)):
                rows = batches.batch(epoch, index)
                assert len({row.source for row in rows}) == 1
                for row in rows:
                    counts[epoch, row.source, row.row] += 1
        assert counts[:, 0].sum(axis=1).tolist() == [125, 125]
        assert counts[:, 1].sum(axis=1).tolist() == [25, 25]
        assert (counts.sum(axis=0)[0] == 5).all() and (counts.sum(axis=0)[1] == 1).all()

    @pytest.mark.parametrize("weight", [0.001, 0.03, 1 / 3, 0.7, 1.1])
    def test_odd_weights_leave_no_epoch_without_a_batch(self, loaded, weight):
        sources, table = self.sources(loaded, rows=10, weights=(weight,))
        batches = PairBatches(sources, table.lengths(), size=4)
        for epoch in (0, 1, 2, 99, 199, 999):
            sizes = [len(batches.batch(epoch, index)) for index in range(batches.length(epoch))]
            assert sum(sizes) == max(2, round(10 * weight)) and min(sizes) >= 2

    def test_bucketing_saves_padding(self, loaded):
        sources, table = self.sources(loaded, rows=400)
        lengths = table.lengths()

        def waste(bucketed):
            batches = PairBatches(sources, lengths, size=8, bucketed=bucketed)
            spread = 0
            for index in range(batches.length(0)):
                costs = [lengths[sources[0].columns[e.row]].sum() for e in batches.batch(0, index)]
                spread += len(costs) * max(costs) - sum(costs)
            return spread

        assert waste(True) < 0.2 * waste(False)


def test_matryoshka_is_refused_where_it_makes_no_sense(loaded):
    columns = {"anchor": ["a", "b"]}
    source, table = source_of(
        loaded,
        "distillation",
        columns,
        np.ones((2, 32), dtype=np.float32),
        settings=LossSettings(dimensions=(8,)),
    )
    objective = SiameseObjective([source], table, packed=True)
    with pytest.raises(UsageError, match="no Matryoshka"):
        objective.loss(Siamese(loaded.model, [None]), objective.prepare(examples([0, 1]), draw=0))
