"""Replaced token detection: which tokens did a generator put there? (Clark et al. 2020, ELECTRA, 2003.10555).

A small masked language model fills the masks with samples of its own predictions; the encoder proper,
called the discriminator, decides for every token whether it is the original. It learns from all tokens and
not from 15%. This is no GAN: the generator is trained by maximum likelihood, and no gradient passes from the
discriminator to it, because sampling has none. Only the shared embeddings learn from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from likewise.embedder.examples import Batch, Example, collate
from likewise.embedder.masking import Masking, generator_for, mask_example
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.objectives.mlm import masked_targets
from likewise.embedder.objectives.vocabulary import vocabulary_loss
from likewise.embedder.pretraining import ReplacedTokenModel, encode


@dataclass(frozen=True, slots=True)
class ReplacedTokenDetection:
    """ELECTRA's objective: generator loss + `weight` * discriminator loss.

    Attributes:
        vocabulary: Of the tokenizer.
        masking: Which tokens the generator fills. ELECTRA masks 85% of the chosen tokens and leaves 15%; see
            `electra_masking`.
        pad_id: Fills padded batches.
        weight: Of the discriminator: its loss per token is much smaller than the generator's.
    """

    vocabulary: MaskingVocabulary
    masking: Masking = field(default_factory=lambda: electra_masking())
    pad_id: int = 0
    weight: float = 50.0

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "rtd"

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Mask and collate, and draw the numbers that the generator samples with."""
        masked = [
            mask_example(example, self.masking, self.vocabulary, draw=draw, progress=progress)
            for example in examples
        ]
        return collate(
            examples,
            inputs=[example.ids for example in masked],
            labels=[example.labels for example in masked],
            # Drawn here and for each example, so that its loss is the same in any batch, whenever computed.
            noise=[
                generator_for(self.masking.seed + 1, example.key, draw).random(len(example), dtype=np.float32)
                for example in examples
            ],
            packed=packed,
            pad_id=self.pad_id,
        )

    def counts(self, batch: Batch) -> dict[str, int]:
        """Chosen tokens for the generator, all real tokens for the discriminator."""
        return {"generator": len(masked_targets(batch)[1]), "discriminator": batch.tokens}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Losses of both parts of a `ReplacedTokenModel`."""
        assert isinstance(model, ReplacedTokenModel) and batch.noise is not None
        positions, targets = masked_targets(batch)
        generator = model.generator
        generated = vocabulary_loss(generator, generator.hidden(batch, positions), targets, batch.noise)

        flat = batch.input_ids.flatten()
        original = flat.index_copy(0, positions, targets)
        assert generated.sampled is not None
        filled = flat.index_copy(0, positions, generated.sampled)
        # A sample that happens to be the original token counts as original.
        replaced = (filled != original).index_select(0, batch.real_positions())  # (tokens,)

        hidden = encode(model.encoder, replace(batch, input_ids=filled.view_as(batch.input_ids)))
        scores = model.replaced_head(hidden.index_select(0, batch.real_positions()))  # (tokens,)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        detected = F.binary_cross_entropy_with_logits(scores, replaced.to(scores.dtype), reduction="sum")
        right = ((scores.detach() > 0) == replaced).sum()
        count, tokens = len(targets), batch.tokens
        return Loss(
            (Term("generator", generated.sum, count), Term("discriminator", detected, tokens, self.weight)),
            {
                "masked_accuracy": Metric(generated.correct, count),
                "detection_accuracy": Metric(right, tokens),
                "replaced_share": Metric(replaced.sum(), tokens),
            },
        )


def electra_masking(rate: float = 0.15, seed: int = 0) -> Masking:
    """ELECTRA's masking: 85% of the chosen tokens become [MASK], none a random token."""
    return Masking(rate=rate, evaluation_rate=rate, masked=0.85, random=0.0, seed=seed)
