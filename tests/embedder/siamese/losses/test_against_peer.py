"""Every loss against the one of the same name in sentence-transformers: values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch
from sentence_transformers.sentence_transformer import losses as peer
from sentence_transformers.sentence_transformer.losses.contrastive import SiameseDistanceMetric
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from torch import Tensor, nn

from likewise.embedder.siamese.losses.angle import angle, angle_similarity
from likewise.embedder.siamese.losses.contrastive import contrastive
from likewise.embedder.siamese.losses.cosent import cosent
from likewise.embedder.siamese.losses.cosine import cosine_regression
from likewise.embedder.siamese.losses.distillation import embedding_distillation
from likewise.embedder.siamese.losses.margin_mse import margin_mse
from likewise.embedder.siamese.losses.matryoshka import matryoshka
from likewise.embedder.siamese.losses.online_contrastive import online_contrastive
from likewise.embedder.siamese.losses.ranking import multiple_negatives_ranking
from likewise.embedder.siamese.losses.simcse import simcse
from likewise.embedder.siamese.losses.softmax import softmax_classification
from likewise.embedder.siamese.losses.triplet import triplet
from likewise.errors import UsageError

N, D = 9, 12


class Given(nn.Module):
    """Stands in for their model: the features hold the embeddings already."""

    device = torch.device("cpu")

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return dict(features)

    def get_embedding_dimension(self) -> int:
        return D


def columns(count: int, *, seed: int = 0, d: int = D) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, N, d)
    return list(torch.randn(shape, generator=generator, dtype=torch.float64).unbind(0))


def labels(kind: str) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    match kind:
        case "binary":
            return torch.tensor([1, 0, 1, 1, 0, 0, 1, 0, 1])
        case "class":
            return torch.randint(0, 3, (N,), generator=generator)
        case "score":  # with ties, as real scores have
            return torch.randint(0, 6, (N,), generator=generator) / 5
        case "margins":
            return torch.randn(N, 2, generator=generator, dtype=torch.float64)
    return torch.randn(N, D, generator=generator, dtype=torch.float64)


def same(
    ours: Callable[[Sequence[Tensor]], Tensor],
    theirs: Callable[[Sequence[Tensor]], Tensor],
    given: list[Tensor],
) -> None:
    mine = [column.clone().requires_grad_() for column in given]
    other = [column.clone().requires_grad_() for column in given]
    value, expected = ours(mine), theirs(other)
    assert value.item() == pytest.approx(expected.item(), rel=1e-7)
    assert value.item() != 0
    value.backward()
    expected.backward()
    for left, right in zip(mine, other, strict=True):
        assert right.grad is not None and left.grad is not None
        assert left.grad.abs().max() > 0
        torch.testing.assert_close(left.grad, right.grad, rtol=1e-6, atol=1e-8)


def features(given: Sequence[Tensor]) -> list[dict[str, Tensor]]:
    return [{"sentence_embedding": column} for column in given]


@pytest.mark.parametrize("shape", ["u,v", "u,v,|u-v|"])
def test_softmax_classification(shape):
    theirs = peer.SoftmaxLoss(Given(), D, 3, concatenation_sent_difference=shape == "u,v,|u-v|").double()
    weight, bias = theirs.classifier.weight, theirs.classifier.bias
    same(
        lambda x: softmax_classification(*x, labels("class"), weight, bias, features=shape).mean(),
        lambda x: theirs(features(x), labels("class")),
        columns(2),
    )


def test_cosine_regression():
    theirs = peer.CosineSimilarityLoss(Given())
    same(
        lambda x: cosine_regression(*x, labels("score")).mean(),
        lambda x: theirs.compute_loss_from_embeddings(list(x), labels("score")),
        columns(2),
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", ["binary", "all 1", "all 0"])
def test_contrastive_and_online_contrastive(metric, kind):
    given = {"binary": labels("binary"), "all 1": torch.ones(N), "all 0": torch.zeros(N)}[kind]
    distance = (
        SiameseDistanceMetric.COSINE_DISTANCE if metric == "cosine" else SiameseDistanceMetric.EUCLIDEAN
    )
    margin = 1.2 if metric == "cosine" else 6.0
    for ours, theirs in (
        (contrastive, peer.ContrastiveLoss(Given(), distance, margin)),
        (online_contrastive, peer.OnlineContrastiveLoss(Given(), distance, margin)),
    ):
        same(
            lambda x, ours=ours: ours(*x, given, margin=margin, metric=metric).mean(),
            lambda x, theirs=theirs: theirs.compute_loss_from_embeddings(list(x), given),
            columns(2),
        )


@pytest.mark.parametrize(("metric", "margin"), [("cosine", 0.3), ("euclidean", 5.0)])
def test_triplet(metric, margin):
    distance = TripletDistanceMetric.COSINE if metric == "cosine" else TripletDistanceMetric.EUCLIDEAN
    theirs = peer.TripletLoss(Given(), distance, margin)
    close = pytest.approx(1e-5, abs=1e-5)  # theirs has no small constant in the Euclidean distance
    given = columns(3)
    mine = triplet(*given, margin=margin, metric=metric)
    assert (mine.mean() - theirs.compute_loss_from_embeddings(given, labels("binary"))).item() == close
    if metric == "cosine":
        same(
            lambda x: triplet(*x, margin=margin).mean(),
            lambda x: theirs.compute_loss_from_embeddings(list(x), labels("binary")),
            given,
        )


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("symmetric", [False, True])
def test_multiple_negatives_ranking(count, symmetric):
    if symmetric:
        theirs = peer.MultipleNegativesRankingLoss(
            Given(), scale=7.0, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
        )
    else:
        theirs = peer.MultipleNegativesRankingLoss(Given(), scale=7.0)
    same(
        lambda x: multiple_negatives_ranking(x[0], torch.cat(x[1:]), scale=7.0, symmetric=symmetric).mean(),
        lambda x: theirs(features(x), labels("binary")),
        columns(count),
    )


def test_simcse_is_ranking_with_two_views():
    theirs = peer.MultipleNegativesRankingLoss(Given())
    same(lambda x: simcse(*x).mean(), lambda x: theirs(features(x), labels("binary")), columns(2))


@pytest.mark.parametrize("kind", ["score", "binary"])
def test_cosent(kind):
    theirs = peer.CoSENTLoss(Given())
    same(
        lambda x: cosent(*x, labels(kind)),
        lambda x: theirs.compute_loss_from_embeddings(list(x), labels(kind)),
        columns(2),
    )


@pytest.mark.parametrize("d", [12, 11])
def test_angle(d):
    theirs = peer.AnglELoss(Given())
    same(
        lambda x: angle(*x, labels("score")),
        lambda x: theirs.compute_loss_from_embeddings(list(x), labels("score")),
        columns(2, d=d),
    )


def test_angle_similarity_is_the_complex_quotient():
    u, v = (nn.functional.normalize(x, dim=-1) for x in columns(2))
    complex_u, complex_v = (torch.complex(*x.chunk(2, dim=-1)) for x in (u, v))
    product = (complex_u * complex_v.conj()).sum(-1)
    torch.testing.assert_close(angle_similarity(u, v), (product.real + product.imag).abs())


@pytest.mark.parametrize("measure", ["mse", "cosine"])
def test_distillation(measure):
    theirs = peer.EmbedDistillLoss(Given(), distance_metric=measure)
    same(
        lambda x: embedding_distillation(x[0], labels("vectors"), measure=measure).mean(),
        lambda x: theirs(features(x), labels("vectors")),
        columns(1),
    )


@pytest.mark.parametrize("negatives", [1, 2])
def test_margin_mse(negatives):
    margins = labels("margins")[:, :negatives]
    theirs = peer.MarginMSELoss(Given())
    same(
        lambda x: margin_mse(x[0], x[1], x[2:], margins).mean(),
        lambda x: theirs.compute_loss_from_embeddings(list(x), margins),
        columns(2 + negatives),
    )


def test_matryoshka():
    dimensions, weights = [12, 6, 3], [1.0, 0.5, 2.0]
    model = Given()
    theirs = peer.MatryoshkaLoss(model, peer.CoSENTLoss(model), dimensions, weights)
    same(
        lambda x: matryoshka(lambda y: cosent(*y, labels("score")), x, dimensions, weights),
        lambda x: theirs(features(x), labels("score")),
        columns(2),
    )


class TestMask:
    def test_an_excluded_candidate_changes_nothing(self):
        anchors, positives = columns(2)
        excluded = torch.zeros(N, N, dtype=torch.bool)
        excluded[0, 3] = True
        loss = multiple_negatives_ranking(anchors, positives, excluded=excluded)
        kept = [at for at in range(N) if at != 3]
        without = multiple_negatives_ranking(anchors[kept], positives[kept])
        full = multiple_negatives_ranking(anchors, positives)
        torch.testing.assert_close(loss[0], without[0])
        torch.testing.assert_close(loss[1:], full[1:])
        assert loss[0] < full[0]

    def test_the_own_positive_is_never_excluded(self):
        anchors, positives = columns(2)
        everything = torch.ones(N, N, dtype=torch.bool)
        loss = multiple_negatives_ranking(anchors, positives, excluded=everything, symmetric=True)
        assert torch.equal(loss, torch.zeros(N, dtype=torch.float64))

    def test_gradients_stay_finite(self):
        anchors, positives = (column.requires_grad_() for column in columns(2))
        excluded = torch.rand(N, N, generator=torch.Generator().manual_seed(0)) < 0.7
        multiple_negatives_ranking(anchors, positives, excluded=excluded, symmetric=True).sum().backward()
        assert anchors.grad is not None and anchors.grad.isfinite().all()


class TestDecomposition:
    """Sums over parts of a batch add up to the sum over the batch, or they do not and the loss says so."""

    @pytest.mark.parametrize(
        "loss",
        [
            lambda x, y: cosine_regression(x[0], x[1], y),
            lambda x, y: contrastive(x[0], x[1], y),
            lambda x, y: triplet(x[0], x[1], x[2]),
            lambda x, y: softmax_classification(x[0], x[1], y.long(), torch.ones(2, 3 * D).double()),
            lambda x, y: embedding_distillation(x[0], x[1]),
            lambda x, y: margin_mse(x[0], x[1], [x[2]], y),
        ],
    )
    def test_sums(self, loss):
        given, wanted = columns(3), labels("binary")
        cuts = list(pairwise([0, 2, 3, N]))
        parts = [loss([x[a:b] for x in given], wanted[a:b]).sum() for a, b in cuts]
        assert sum(parts).item() == pytest.approx(loss(given, wanted).sum().item())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: softmax_classification(x, x, x[:, 0].long(), x, features="u"), "expected the features"),
        (lambda x: contrastive(x, x, x[:, 0], metric="manhattan"), "expected the distance"),
        (lambda x: embedding_distillation(x, x, measure="l2"), "expected the measure"),
        (lambda x: embedding_distillation(x, x[:, :3]), "the teacher's shape"),
        (lambda x: margin_mse(x, x, [x], x[:, :2]), "a margin for each of 1 negatives, found 2"),
        (lambda x: matryoshka(lambda y: y[0], [x], [D + 1]), "from 1 to 12"),
        (lambda x: matryoshka(lambda y: y[0], [x], []), "from 1 to 12"),
        (lambda x: matryoshka(lambda y: y[0], [x], [2], [1.0, 2.0]), "a weight for each of 1"),
    ],
)
def test_what_makes_no_sense(call, message):
    with pytest.raises(UsageError, match=message):
        call(columns(1)[0])
