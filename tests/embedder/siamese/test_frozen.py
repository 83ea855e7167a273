"""Frozen layers: what is kept of them gives the gradients that computing them gives, in bounded space."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Encoder
from likewise.embedder.siamese.frozen import FrozenActivations, kept_activations
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.embedder.siamese.objective import Siamese, SiameseObjective
from likewise.embedder.siamese.pair_batches import PairExample
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.sources import make_source
from likewise.embedder.siamese.tasks import LOSSES
from likewise.embedder.siamese.token_table import TokenTable
from likewise.embedder.siamese.train import train_siamese
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import TrainingError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
COLUMNS = {
    "anchor": [f"how do I rotate key {n}" for n in range(8)],
    "positive": [f"金鑰 {n} " * (n % 3 + 1) for n in range(8)],
}


def prepared(checkpoint, loss="ranking", freeze=1):
    loaded = load_sentence_model(checkpoint)
    loaded.model.freeze(freeze)
    table = TokenTable(loaded.tokenizer)
    columns = COLUMNS if loss == "ranking" else {"anchor": COLUMNS["anchor"]}
    source = make_source(PairData("pairs", columns), table, name="pairs", kind=LOSSES[loss])
    return loaded.model, table, source


def gradients(model, source, table, activations, part_tokens=None):
    objective = SiameseObjective([source], table, packed=True, part_tokens=part_tokens).using(activations)
    batch = objective.prepare([PairExample(0, row) for row in range(8)], draw=0)
    assert all((group.hidden is not None) == (activations is not None) for group in batch.groups)
    whole = Siamese(model, [None]).train()
    whole.zero_grad()
    torch.manual_seed(5)
    loss = objective.loss(whole, batch).total()
    loss.backward()
    return loss.item(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


# A text has 4 bytes * 32 for each of its tokens: the whole of it, about half, less than one text.
@pytest.mark.parametrize("gigabytes", [1.0, 1e-5, 1e-9])
@pytest.mark.parametrize("part_tokens", [None, 50])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_gradients_are_the_same(plain_checkpoint, tmp_path, architecture, part_tokens, gigabytes):
    if architecture == "albert":  # shares its layers: they are frozen all or none
        with pytest.raises(UsageError, match="0 to 0 layers"):
            prepared(plain_checkpoint(architecture))
        return
    model, table, source = prepared(plain_checkpoint(architecture))
    expected = gradients(model, source, table, None, part_tokens)
    with kept_activations(model, table, tmp_path, gigabytes=gigabytes) as activations:
        size = sum(path.stat().st_size for path in tmp_path.rglob("*.f32"))
        assert size <= gigabytes * 1e9 and (activations.kept == len(table)) == (gigabytes == 1.0)
        found = gradients(model, source, table, activations, part_tokens)
    assert not list(tmp_path.iterdir())
    assert found[0] == pytest.approx(expected[0], rel=1e-5)
    assert found[1].keys() == expected[1].keys()
    assert not any("embeddings" in name or "layers.0" in name for name in found[1])
    for name, gradient in expected[1].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_frozen_layers_drop_nothing_and_upper_ones_do(plain_checkpoint):
    model, _, _ = prepared(plain_checkpoint("bert"))
    model.train()
    lower, upper = model.body.layers
    assert not lower.training and not lower.dropout.training and not model.body.embeddings.training
    assert upper.training and upper.dropout.training
    assert not model.eval().training and not upper.training


def test_two_views_of_a_text_share_what_is_kept(plain_checkpoint, tmp_path):
    model, table, source = prepared(plain_checkpoint("bert"), loss="simcse")
    with kept_activations(model, table, tmp_path, gigabytes=1) as activations:
        objective = SiameseObjective([source], table, packed=True).using(activations)
        [group] = objective.prepare([PairExample(0, row) for row in range(8)], draw=0).groups
        assert group.hidden.shape == (1, sum(group.lengths), 32) and len(group.lengths) == 16


def test_damaged_texts_are_not_kept(plain_checkpoint, tmp_path):
    model, table, source = prepared(plain_checkpoint("bert"), loss="tsdae")
    with kept_activations(model, table, tmp_path, gigabytes=1) as activations:
        objective = SiameseObjective([source], table, packed=True).using(activations)
        batch = objective.prepare([PairExample(0, 0)], draw=0)
        assert all(group.hidden is None for group in batch.groups)


def test_texts_are_computed_once(plain_checkpoint, tmp_path, monkeypatch):
    model, table, _ = prepared(plain_checkpoint("bert"))
    with kept_activations(model, table, tmp_path, gigabytes=1) as activations:
        monkeypatch.setattr(type(model.body), "lower", None)
        found = activations.of([3, 0, 3])
    assert np.array_equal(found[0], found[2]) and len(found[1]) == len(table.ids(0))
    assert isinstance(activations, FrozenActivations) and activations.kept == 0


def test_a_run_is_the_same_with_and_without(plain_checkpoint, tmp_path):
    base = plain_checkpoint("bert")
    data = [TrainingData(source=PairData("pairs", COLUMNS), loss="ranking")]
    vectors = []
    for name, cache in (("without", None), ("with", 1.0), ("again", 1.0)):
        settings = SiameseSettings(
            training=TrainingSettings(epochs=3, learning_rate=1e-3, precision="float32"),
            encoder=str(base),
            batch_size=4,
            held_out=0.0,
            freeze=1,
            cache_frozen=cache,
            device="cpu",
        )
        train_siamese(data, tmp_path / name, settings)
        vectors.append(Encoder.load(tmp_path / name, runtime="torch").encode_passages(COLUMNS["anchor"]))
        assert not list((tmp_path / name / "training").glob("frozen-*"))
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-4)
    assert np.array_equal(vectors[1], vectors[2])


class TestRefused:
    @pytest.mark.parametrize("changes", [{}, {"freeze": 0}, {"freeze": 1, "cache_frozen": 0.0}])
    def test_settings_that_make_no_sense(self, changes):
        with pytest.raises(UsageError, match="expected frozen layers and a size above 0"):
            SiameseSettings(training=TrainingSettings(epochs=1), **({"cache_frozen": 1.0} | changes))

    def test_models_without_frozen_layers_or_of_another_kind(self, plain_checkpoint, tmp_path):
        loaded = load_sentence_model(plain_checkpoint("bert"))
        table = TokenTable(loaded.tokenizer)
        with (
            pytest.raises(UsageError, match="no layer is frozen"),
            kept_activations(loaded.model, table, tmp_path, gigabytes=1),
        ):
            pass
        model, table, _ = prepared(plain_checkpoint("mpnet"))
        with (
            pytest.raises(UsageError, match="of the BERT family only"),
            kept_activations(model, table, tmp_path, gigabytes=1),
        ):
            pass

    def test_a_full_disk_and_errors_of_the_run(self, plain_checkpoint, tmp_path, monkeypatch):
        model, table, _ = prepared(plain_checkpoint("bert"))

        def full(*_):
            raise OSError(28, "No space left on device")

        with (
            pytest.raises(OSError, match="of the run"),
            kept_activations(model, table, tmp_path, gigabytes=1),
        ):
            raise OSError("of the run")
        monkeypatch.setattr("likewise.embedder.siamese.frozen._fill", full)
        with (
            pytest.raises(TrainingError, match=r"could not be kept .* No space left"),
            kept_activations(model, table, tmp_path, gigabytes=1),
        ):
            pass
        assert not list(tmp_path.iterdir())
