"""Replaced token detection: who learns from whom, and how replacements are drawn."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F

from likewise.embedder.objectives import Term
from likewise.embedder.objectives.rtd import ReplacedTokenDetection
from likewise.embedder.objectives.vocabulary import sample_tokens
from likewise.embedder.pretraining import ReplacedTokenModel

from .objective_cases import (
    CASES,
    texts,
)


def electra() -> tuple[ReplacedTokenDetection, ReplacedTokenModel]:
    return CASES["rtd"][0]()  # type: ignore[return-value]  # the table holds all recipes


def test_gradients_do_not_cross_between_generator_and_discriminator() -> None:
    objective, model = electra()
    batch = objective.prepare(texts(12, 20), draw=0)
    generator, discriminator = objective.loss(model, batch).terms
    shared = {id(p) for p in model.encoder.embeddings.parameters()}
    own_generator = [p for p in model.generator.parameters() if id(p) not in shared]
    own_discriminator = [
        p for p in [*model.encoder.parameters(), *model.replaced_head.parameters()] if id(p) not in shared
    ]
    table = model.encoder.embeddings.token.weight

    def touched(term: Term, parameters: list[torch.nn.Parameter]) -> list[bool]:
        found = torch.autograd.grad(term.sum, parameters, retain_graph=True, allow_unused=True)
        return [value is not None and bool(value.abs().max() > 0) for value in found]

    assert not any(touched(discriminator, own_generator))
    assert not any(touched(generator, own_discriminator))
    assert all(touched(generator, [*own_generator, table]))
    assert all(touched(discriminator, [*own_discriminator, table]))


def test_discriminator_loss_equals_an_independent_computation() -> None:
    objective, model = electra()
    examples = texts(12, 20, 6)
    batch = objective.prepare(examples, draw=0, packed=False)
    loss = objective.loss(model, batch)
    assert [term.weight for term in loss.terms] == [1.0, 50.0]

    with torch.no_grad():
        ids = batch.input_ids.clone()
        logits = model.generator.token_logits(model.generator.encoder(ids, mask=batch.mask).flatten(0, 1))
        for place, level in zip(batch.target_positions.tolist(), batch.noise.tolist(), strict=True):
            reached = logits[place].softmax(-1).cumsum(-1)
            token = next(at for at, share in enumerate(reached.tolist()) if share > level)
            ids.view(-1)[place] = token
        real = torch.zeros_like(ids)
        for row, example in enumerate(examples):
            real[row, : len(example)] = torch.from_numpy(example.ids)
        wrong = (ids != real).double()
        scores = model.replaced_head(model.encoder(ids, mask=batch.mask))
        mask = torch.arange(20) < torch.tensor([12, 20, 6])[:, None]
        each = -(wrong * F.logsigmoid(scores) + (1 - wrong) * F.logsigmoid(-scores))
        expected = each[mask].sum()
    assert 0 < wrong[mask].sum() < mask.sum()
    torch.testing.assert_close(loss.terms[1].sum, expected, atol=1e-8, rtol=1e-8)
    assert loss.terms[1].count == 38
    assert loss.metrics["replaced_share"].sum == wrong[mask].sum()


def test_sampling_follows_the_distribution() -> None:
    """Chi-square over five tokens, one of them impossible: 18.5 is exceeded once in 1,000 times."""
    shares = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    n = 20_000
    noise = torch.rand(n, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(sample_tokens(shares.expand(n, 5), noise), minlength=5)
    assert counts[1] == 0
    possible = shares > 0
    expected = shares[possible] * n
    assert ((counts[possible] - expected) ** 2 / expected).sum() < 18.5


def test_sampling_edges() -> None:
    shares = torch.tensor([[0.0, 1.0, 0.0]])
    for level in (0.0, 0.5, 1 - 2**-24):
        assert sample_tokens(shares, torch.tensor([level])).tolist() == [1]
    assert sample_tokens(torch.zeros(0, 3), torch.zeros(0)).tolist() == []
    # Not normalised, as the loss hands them over.
    assert sample_tokens(torch.tensor([[2.0, 6.0]]), torch.tensor([0.24])).tolist() == [0]
    assert sample_tokens(torch.tensor([[2.0, 6.0]]), torch.tensor([0.26])).tolist() == [1]


def test_a_sample_that_hits_the_original_counts_as_original() -> None:
    objective, model = electra()
    batch = objective.prepare(texts(12, 20), draw=0)
    with torch.no_grad():  # a generator that knows the answer
        model.generator.token_head.bias.fill_(0)
    sure = replace(batch, targets=torch.full_like(batch.targets, 7))
    with torch.no_grad():
        model.generator.token_head.bias[7] = 1e4
    assert objective.loss(model, sure).metrics["replaced_share"].sum == 0
    assert objective.loss(model, batch).metrics["replaced_share"].sum == (batch.targets != 7).sum()


def test_noise_differs_between_draws_and_examples() -> None:
    objective, _ = electra()
    first = objective.prepare(texts(30), draw=0).noise
    assert not torch.equal(first, objective.prepare(texts(30), draw=1).noise)
    assert torch.equal(first, objective.prepare(texts(30), draw=0).noise)
    assert ((first >= 0) & (first < 1)).all()
