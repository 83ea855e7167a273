"""What holds for every objective, and for masked, paired and causal language modelling."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from likewise.embedder.examples import Example
from likewise.embedder.masking import Masking
from likewise.embedder.objectives import Loss, Term, add_counts
from likewise.embedder.objectives.causal import CausalLanguageModelling
from likewise.embedder.objectives.mlm import MaskedLanguageModelling
from likewise.embedder.objectives.nsp import NextSentencePrediction
from likewise.embedder.objectives.sop import SentenceOrderPrediction
from likewise.embedder.objectives.vocabulary import vocabulary_loss
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import DataError, UsageError

from .objective_cases import (
    CASES,
    CONFIG,
    MLM,
    VOCABULARY,
    gradients,
    noisy,
    pairs,
    texts,
)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("packed", [True, False])
def test_accumulated_gradients_equal_the_big_batch(name: str, packed: bool) -> None:
    """Micro-batches of very different size: the mean of their means would be far off."""
    build, make = CASES[name]
    objective, model = build()
    examples = make(4, 17, 5, 30 if make is texts else 15, 3, 9)
    whole = objective.prepare(examples, draw=0, packed=packed)
    parts = [objective.prepare(examples[a:b], draw=0, packed=packed) for a, b in ((0, 1), (1, 2), (2, 6))]
    objective.loss(model, whole).total().backward()
    expected = gradients(model)
    assert max(float(value.abs().max()) for value in expected.values()) > 1e-3

    again = copy.deepcopy(model)
    again.zero_grad()
    totals = add_counts(objective.counts(part) for part in parts)
    assert totals == objective.counts(whole)
    for part in parts:
        objective.loss(again, part).total(totals).backward()
    for key, value in gradients(again).items():
        torch.testing.assert_close(value, expected[key], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_packed_and_padded_batches_have_the_same_loss_and_terms(name: str) -> None:
    build, make = CASES[name]
    objective, model = build()
    examples = make(9, 4, 9, 12)
    packed = objective.prepare(examples, draw=2)
    padded = objective.prepare(examples, draw=2, packed=False)
    assert packed.mask is None and padded.lengths is None
    assert packed.tokens == padded.tokens
    for one, other in zip(
        objective.loss(model, packed).terms, objective.loss(model, padded).terms, strict=True
    ):
        assert (one.name, one.count, one.weight) == (other.name, other.count, other.weight)
        torch.testing.assert_close(one.sum, other.sum, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_terms_and_metrics_are_shares(name: str) -> None:
    build, make = CASES[name]
    objective, model = build()
    batch = objective.prepare(make(9, 4, 6), draw=0)
    loss = objective.loss(model, batch)
    assert objective.counts(batch) == {term.name: term.count for term in loss.terms}
    assert loss.metrics
    for metric in loss.metrics.values():
        assert not metric.sum.requires_grad
        assert 0 <= metric.sum.item() <= metric.count


@pytest.mark.parametrize("name", CASES)
def test_preparing_is_a_pure_function(name: str) -> None:
    build, make = CASES[name]
    objective, model = build()
    examples = make(9, 4, 6)
    first, second = (objective.prepare(examples, draw=None) for _ in range(2))
    assert torch.equal(first.input_ids, second.input_ids)
    torch.manual_seed(0)
    one = objective.loss(model, first).total()
    torch.manual_seed(99)
    assert torch.equal(one, objective.loss(model, second).total())


@pytest.mark.parametrize("name", ["mlm", "rtd", "causal", "distillation-all", "distillation-masked"])
def test_a_batch_without_targets_has_loss_zero_where_nothing_is_predicted(name: str) -> None:
    build, _ = CASES[name]
    objective, model = build()
    nothing = Example(np.array([2]), np.array([True]))
    batch = objective.prepare([nothing], draw=0)
    loss = objective.loss(model, batch)
    total = loss.total()
    assert torch.isfinite(total)
    for term in loss.terms:
        if term.count == 0:
            assert term.sum.item() == 0
    total.backward()
    assert all(torch.isfinite(value).all() for value in gradients(model).values())


def test_masked_projection_equals_full_projection_with_ignored_labels() -> None:
    objective, model = CASES["mlm"][0]()
    batch = objective.prepare(texts(12, 7, 20), draw=0, packed=False)
    objective.loss(model, batch).total().backward()
    found = gradients(model)

    reference = copy.deepcopy(model)
    reference.zero_grad()
    hidden = reference.encoder(batch.input_ids, mask=batch.mask)
    logits = reference.token_head(hidden, reference.encoder.embeddings.token.weight)
    labels = torch.full((batch.input_ids.numel(),), -100)
    labels[batch.target_positions] = batch.targets
    loss = F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=-100)
    torch.testing.assert_close(objective.loss(model, batch).total(), loss, atol=1e-6, rtol=1e-6)
    loss.backward()
    for key, value in gradients(reference).items():
        torch.testing.assert_close(found[key], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("head", ["transform", "direct"])
@pytest.mark.parametrize("block", [1, 200, 10**9])
def test_projected_cross_entropy_in_blocks(head: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.embedder.objectives.vocabulary._BLOCK", block)
    model = noisy(PretrainingModel(CONFIG, token_head=head)).float()
    hidden = torch.randn(11, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    positions, targets = torch.tensor([0, 3, 3, 10, 7]), torch.tensor([0, 60, 5, 7, 60])
    found = vocabulary_loss(model, hidden[positions], targets)
    (2.5 * found.sum).backward()
    ours = (hidden.grad.clone(), {k: v.clone() for k, v in gradients(model).items()})
    hidden.grad = None
    model.zero_grad()
    logits = model.token_logits(hidden[positions])
    (2.5 * F.cross_entropy(logits, targets, reduction="sum")).backward()
    torch.testing.assert_close(found.sum, F.cross_entropy(logits, targets, reduction="sum"))
    assert found.correct.item() == (logits.argmax(-1) == targets).sum().item()
    assert found.sampled is None
    torch.testing.assert_close(ours[0], hidden.grad, atol=1e-5, rtol=1e-4)
    for key, value in gradients(model).items():
        torch.testing.assert_close(ours[1][key], value, atol=1e-5, rtol=1e-4)


def test_loss_survives_huge_scores() -> None:
    model = PretrainingModel(CONFIG, token_head="direct")
    with torch.no_grad():
        model.encoder.embeddings.token.weight.mul_(1e4)
    found = vocabulary_loss(model, torch.randn(4, 16) * 1e3, torch.zeros(4, dtype=torch.long))
    assert torch.isfinite(found.sum)


def test_bfloat16_autocast_gives_nearly_the_same_loss_and_gradient() -> None:
    objective, model = CASES["mlm"][0]()
    model.float()
    batch = objective.prepare(texts(12, 7, 20), draw=0)
    exact = objective.loss(model, batch).total()
    exact.backward()
    expected = {k: v.clone() for k, v in gradients(model).items()}
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        low = objective.loss(model, batch).total()
    low.backward()
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(exact.item(), rel=0.02)
    for key, value in gradients(model).items():
        assert value.dtype == torch.float32
        if expected[key].norm() > 1e-3:
            assert F.cosine_similarity(value.flatten(), expected[key].flatten(), dim=0) > 0.98, key


def test_mlm_loss_written_out_on_one_token() -> None:
    """Vocabulary of 61, all scores equal: the loss of a prediction is ln 61."""
    model = PretrainingModel(CONFIG)
    with torch.no_grad():
        model.encoder.embeddings.token.weight.zero_()
    objective = MaskedLanguageModelling(VOCABULARY, Masking(rate=1.0))
    batch = objective.prepare(texts(3), draw=0)
    assert batch.targets.tolist() == [int(texts(3)[0].ids[1])]
    assert objective.loss(model, batch).total().item() == pytest.approx(np.log(61), abs=1e-5)


def test_evaluation_rate_is_used_in_evaluation() -> None:
    objective = MaskedLanguageModelling(VOCABULARY, Masking(rate=0.5, evaluation_rate=0.1))
    text = texts(32)
    long = Example(np.tile(text[0].ids[1:-1], 10), np.zeros(300, dtype=bool))
    assert objective.counts(objective.prepare([long], draw=None)) == {"mlm": 30}
    assert objective.counts(objective.prepare([long], draw=0)) == {"mlm": 150}


def test_pair_objectives_refuse_single_texts_and_models_without_a_head() -> None:
    batch = MLM.prepare(texts(6), draw=0)
    model = PretrainingModel(CONFIG, pair_head="pair")
    with pytest.raises(DataError, match="sentence pairs with a label, found single texts"):
        NextSentencePrediction().loss(model, batch)
    with pytest.raises(UsageError, match="no head for sentence pairs"):
        SentenceOrderPrediction().loss(PretrainingModel(CONFIG), MLM.prepare(pairs(4), draw=0))
    with pytest.raises(UsageError, match="need a model with a pooler"):
        PretrainingModel(replace(CONFIG, pooler=False), pair_head="pair")


def test_pair_loss_is_that_of_the_cls_tokens_whatever_the_order_in_the_batch() -> None:
    objective, model = CASES["nsp"][0]()
    examples = pairs(3, 10, 6, 10)
    batch = objective.prepare(examples, draw=0)
    assert batch.lengths == (24, 24, 16, 10)
    assert batch.pair_labels.tolist() == [0, 0, 0, 1]
    expected = 0.0
    for example in examples:
        ids, segments = torch.from_numpy(example.ids)[None], torch.from_numpy(example.segment_ids)[None]
        logits = model.pair_logits(model.encoder(ids, segments)[:, 0])
        expected += F.cross_entropy(logits, torch.tensor([example.pair_label]), reduction="sum").item()
    assert objective.loss(model, batch).terms[0].sum.item() == pytest.approx(expected, rel=1e-6)


def test_joint_runs_the_encoder_once() -> None:
    objective, model = CASES["mlm+nsp"][0]()
    calls = []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    loss = objective.loss(model, objective.prepare(pairs(5, 9), draw=0))
    assert len(calls) == 1
    assert objective.name == "mlm+nsp"
    assert [term.name for term in loss.terms] == ["mlm", "nsp"]


def test_causal_targets_are_the_next_tokens_of_the_same_text() -> None:
    a = Example(np.array([2, 7, 8, 3]), np.array([True, False, False, True]))
    b = Example(np.array([2, 9, 3]), np.array([True, False, True]))
    objective = CausalLanguageModelling()
    batch = objective.prepare([b, a], draw=0)
    assert batch.input_ids.tolist() == [[2, 7, 8, 3, 2, 9, 3]]
    assert batch.target_positions.tolist() == [0, 1, 2, 4, 5]
    assert batch.targets.tolist() == [7, 8, 3, 9, 3]
    with pytest.raises(UsageError, match="causal=True, found a bidirectional one"):
        objective.loss(PretrainingModel(CONFIG), batch)


def test_causal_loss_equals_hugging_face() -> None:
    from likewise.embedder.hf_export import to_hugging_face

    config = replace(CONFIG, causal=True, norm="pre", segments=0, pooler=False)
    model = noisy(PretrainingModel(config, token_head="direct")).float().eval()
    batch = CausalLanguageModelling().prepare(texts(14), draw=0, packed=False)
    with torch.no_grad():
        expected = to_hugging_face(model)(batch.input_ids, labels=batch.input_ids).loss
        torch.testing.assert_close(
            CausalLanguageModelling().loss(model, batch).total(), expected, atol=1e-5, rtol=1e-5
        )


def test_total_divides_each_term_by_its_own_count() -> None:
    loss = Loss((Term("a", torch.tensor(6.0), 3), Term("b", torch.tensor(8.0), 2, weight=0.5)))
    assert loss.total().item() == 6 / 3 + 0.5 * 8 / 2
    assert loss.total({"a": 12, "b": 16}).item() == 6 / 12 + 0.5 * 8 / 16
    assert Loss((Term("a", torch.tensor(0.0), 0),)).total().item() == 0
    with pytest.raises(KeyError):
        loss.total({"a": 12})


def test_accumulation_by_means_would_be_wrong() -> None:
    """The mistake that the protocol rules out, so that the test above is known to notice it."""
    objective, model = CASES["mlm"][0]()
    examples = texts(4, 30)
    objective.loss(model, objective.prepare(examples, draw=0)).total().backward()
    right = gradients(model)["encoder.layers.0.ffn.widen.weight"].clone()
    model.zero_grad()
    for example in examples:
        (objective.loss(model, objective.prepare([example], draw=0)).total() / 2).backward()
    wrong = gradients(model)["encoder.layers.0.ffn.widen.weight"]
    assert (right - wrong).abs().max() > 1e-3 * right.abs().max()
