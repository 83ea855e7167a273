"""Distillation: the loss, and what a teacher must be."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from likewise.embedder.layer_cut import cut_layers
from likewise.embedder.objectives.distillation import Distillation, soft_target_loss
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError

from .objective_cases import (
    CONFIG,
    MANY,
    VOCABULARY,
    gradients,
    noisy,
    teacher,
    texts,
)


@pytest.mark.parametrize("soft_at", ["all", "masked"])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_distillation_equals_an_independent_computation(soft_at: str, temperature: float) -> None:
    big, student = teacher(), noisy(PretrainingModel(CONFIG))
    objective = Distillation(big, VOCABULARY, MANY, soft_at=soft_at, temperature=temperature)
    batch = objective.prepare(texts(12, 20, 6), draw=0, packed=False)
    loss = objective.loss(student, batch)
    loss.total().backward()
    found = gradients(student)

    reference = copy.deepcopy(student)
    reference.zero_grad()
    s = reference.encoder(batch.input_ids, mask=batch.mask)
    with torch.no_grad():
        t = big.encoder(batch.input_ids, mask=batch.mask)
        t_logits = big.token_logits(t.flatten(0, 1))
    s_logits = reference.token_logits(s.flatten(0, 1))
    where = batch.mask.flatten().nonzero()[:, 0] if soft_at == "all" else batch.target_positions
    soft = temperature**2 * F.kl_div(
        F.log_softmax(s_logits[where] / temperature, -1),
        F.softmax(t_logits[where] / temperature, -1),
        reduction="batchmean",
    )
    hard = F.cross_entropy(s_logits[batch.target_positions], batch.targets)
    cosine = F.cosine_embedding_loss(s[batch.mask], t[batch.mask], torch.ones(38), reduction="mean")
    for term, expected in zip(loss.terms, (soft, hard, cosine), strict=True):
        torch.testing.assert_close(term.sum / term.count, expected, atol=1e-8, rtol=1e-8)
    total = 5 * soft + 2 * hard + 1 * cosine
    torch.testing.assert_close(loss.total(), total, atol=1e-8, rtol=1e-8)
    total.backward()
    for key, value in gradients(reference).items():
        torch.testing.assert_close(found[key], value, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("block", [1, 300])
def test_soft_targets_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    big, small = teacher(), noisy(PretrainingModel(CONFIG))
    hidden, taught = torch.randn(9, 16).double(), torch.randn(9, 16).double()
    whole = soft_target_loss(small, hidden, big, taught, 2.0)
    monkeypatch.setattr("likewise.embedder.objectives.distillation._BLOCK", block)
    torch.testing.assert_close(soft_target_loss(small, hidden, big, taught, 2.0), whole, atol=1e-5, rtol=1e-6)


def test_a_copy_of_the_teacher_has_nothing_to_learn_from_it() -> None:
    big = teacher()
    objective = Distillation(big, VOCABULARY, MANY)
    student = cut_layers(big, range(4)).requires_grad_(True)
    loss = objective.loss(student, objective.prepare(texts(12, 20), draw=0))
    soft, hard, cosine = loss.terms
    assert abs(soft.sum.item()) < 1e-5 and abs(cosine.sum.item()) < 1e-5
    assert hard.sum.item() > 1


def test_teacher_is_never_trained_and_takes_no_dropout() -> None:
    big = PretrainingModel(replace(CONFIG, layers=4, dropout=0.5)).train()
    objective = Distillation(big, VOCABULARY, MANY)
    student = PretrainingModel(CONFIG)
    batch = objective.prepare(texts(12, 20), draw=0)
    first, second = objective.loss(student, batch), objective.loss(student, batch)
    assert first.total().item() == second.total().item()
    first.total().backward()
    assert all(parameter.grad is None for parameter in big.parameters())


def test_models_that_do_not_compare_are_refused() -> None:
    objective = Distillation(teacher(), VOCABULARY)
    batch = objective.prepare(texts(6), draw=0)
    with pytest.raises(UsageError, match="the teacher has 61 tokens, the student 60"):
        objective.loss(PretrainingModel(replace(CONFIG, vocab_size=60)), batch)
    narrow = noisy(PretrainingModel(replace(CONFIG, hidden_size=8)))
    with pytest.raises(UsageError, match="16 and 8 numbers do not compare") as caught:
        objective.loss(narrow, batch)
    assert "cosine_weight" in caught.value.remedy
    without = Distillation(teacher(), VOCABULARY, cosine_weight=0.0)
    assert [term.name for term in without.loss(narrow, batch).terms] == ["soft", "mlm"]
    assert set(without.counts(batch)) == {"soft", "mlm"}
    with pytest.raises(UsageError, match="temperature above 0"):
        Distillation(teacher(), VOCABULARY, temperature=0.0)
