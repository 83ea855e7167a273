"""Knowledge distillation: a small model learns what a big one would have said (Sanh et al. 2019, DistilBERT).

Three terms, all on masked input (paper 1910.01108, weights from its training code):

    soft (5)    T^2 * KL(teacher || student) of the distributions over the vocabulary at temperature T, which
                say more than the one right token (Hinton et al. 2015, 1503.02531)
    mlm (2)     the usual cross-entropy at the masked positions
    cosine (1)  1 - cos(student, teacher) of the last hidden states, at every token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.embedder.examples import Batch, Example
from likewise.embedder.masking import Masking
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.objectives.mlm import MaskedLanguageModelling, masked_targets
from likewise.embedder.objectives.vocabulary import vocabulary_loss, working_dtype
from likewise.embedder.pretraining import PretrainingModel
from likewise.errors import UsageError

# Scores in one block of rows, see `vocabulary.py`.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Distillation:
    """DistilBERT's objective.

    The teacher belongs to the objective and not to the model that is trained: it is neither optimised nor
    saved. It follows the batch to its device.

    Attributes:
        teacher: Model with the vocabulary of the student, which is shallower and, unless `cosine_weight` is
            0, just as wide.
        vocabulary: Of the tokenizer.
        masking: What to choose and how to corrupt it.
        temperature: T, at least 1 softens the distributions.
        soft_at: Where the distributions are compared: at "all" tokens as published, or at "masked" ones,
            which costs a seventh.
        soft_weight: Share of the soft targets.
        mlm_weight: Share of the hard targets.
        cosine_weight: Share of the hidden states; 0 leaves the term out.
        pad_id: Fills padded batches.
    """

    teacher: PretrainingModel
    vocabulary: MaskingVocabulary
    masking: Masking = field(default_factory=Masking)
    temperature: float = 2.0
    soft_at: Literal["all", "masked"] = "all"
    soft_weight: float = 5.0
    mlm_weight: float = 2.0
    cosine_weight: float = 1.0
    pad_id: int = 0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"expected a temperature above 0, found {self.temperature}")
        self.teacher.eval().requires_grad_(False)

    @property
    def name(self) -> str:
        """Short name for logs."""
        return "distillation"

    @property
    def _mlm(self) -> MaskedLanguageModelling:
        return MaskedLanguageModelling(self.vocabulary, self.masking, self.pad_id, self.mlm_weight)

    def prepare(
        self, examples: Sequence[Example], *, draw: int | None, progress: float = 0.0, packed: bool = True
    ) -> Batch:
        """Mask and collate, as MLM does."""
        return self._mlm.prepare(examples, draw=draw, progress=progress, packed=packed)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Tokens compared, tokens guessed, hidden states compared."""
        masked = len(masked_targets(batch)[1])
        counts = {"soft": batch.tokens if self.soft_at == "all" else masked, "mlm": masked}
        return counts | ({"cosine": batch.tokens} if self.cosine_weight else {})

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """The three terms of a `PretrainingModel` against the teacher.

        Raises:
            UsageError: The models differ in vocabulary, or in width while the cosine has a weight.
        """
        assert isinstance(model, PretrainingModel)
        self._check(model)
        positions, targets = masked_targets(batch)
        with torch.no_grad():
            taught = self.teacher.to(batch.input_ids.device).hidden(batch)  # (B * L, H')
        hidden = model.hidden(batch)  # (B * L, H)

        counts = self.counts(batch)
        real = batch.real_positions()
        compared = real if self.soft_at == "all" else positions
        soft = soft_target_loss(
            model,
            hidden.index_select(0, compared),
            self.teacher,
            taught.index_select(0, compared),
            self.temperature,
        )
        hard = vocabulary_loss(model, hidden.index_select(0, positions), targets)
        terms = [
            Term("soft", soft, counts["soft"], self.soft_weight),
            Term("mlm", hard.sum, counts["mlm"], self.mlm_weight),
        ]
        if self.cosine_weight:
            # Autocast leaves both in float32: they come from a LayerNorm.
            pair = hidden.index_select(0, real), taught.index_select(0, real)
            apart = (1 - F.cosine_similarity(*pair, dim=-1)).sum()
            terms.append(Term("cosine", apart, counts["cosine"], self.cosine_weight))
        return Loss(tuple(terms), {"masked_accuracy": Metric(hard.correct, counts["mlm"])})

    def _check(self, model: PretrainingModel) -> None:
        student, teacher = model.config, self.teacher.config
        if student.vocab_size != teacher.vocab_size:
            raise UsageError(
                f"distillation needs one vocabulary: the teacher has {teacher.vocab_size} tokens, "
                f"the student {student.vocab_size}"
            )
        if self.cosine_weight and student.hidden_size != teacher.hidden_size:
            raise UsageError(
                f"hidden states of {teacher.hidden_size} and {student.hidden_size} numbers do not compare",
                remedy="set cosine_weight to 0, or give the student the width of its teacher",
            )


def soft_target_loss(
    student: PretrainingModel, hidden: Tensor, teacher: PretrainingModel, taught: Tensor, temperature: float
) -> Tensor:
    """T^2 * KL(teacher || student) over the vocabulary, summed over tokens.

    The factor T^2 keeps the size of the gradient the same for every temperature.

    Args:
        student: Gives the student's projection.
        hidden: The student's hidden states, (M, H).
        teacher: Gives the teacher's projection.
        taught: The teacher's hidden states, (M, H').
        temperature: T, above 0.

    Returns:
        Scalar in nats, float32 or wider.
    """
    rows = student.token_head.transform(hidden)
    table = student.encoder.embeddings.token.weight
    bias = None if student.token_head.kind == "direct" else student.token_head.bias
    # torch leaves `apply` unannotated.
    loss: Tensor = _ProjectedSoftTargets.apply(  # type: ignore[no-untyped-call]
        rows, table, bias, teacher, taught, temperature
    )
    return loss


class _ProjectedSoftTargets(torch.autograd.Function):
    """Loss and gradient made block by block: at every token of a batch the scores would fill gigabytes."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        table: Tensor,
        bias: Tensor | None,
        teacher: PretrainingModel,
        taught: Tensor,
        temperature: float,
    ) -> Tensor:
        dtype = working_dtype(rows)
        low_rows, low_table = rows.to(dtype), table.to(dtype)
        wide = torch.promote_types(dtype, torch.float32)
        total = rows.new_zeros((), dtype=wide)
        to_rows = torch.zeros_like(low_rows)
        to_table = torch.zeros_like(table, dtype=wide)
        to_bias = None if bias is None else torch.zeros_like(bias, dtype=wide)
        step = max(1, _BLOCK // table.shape[0])
        train = any(ctx.needs_input_grad)
        for begin in range(0, len(rows), step):
            block = slice(begin, begin + step)
            expected = teacher.token_logits(taught[block]).to(wide).div_(temperature).log_softmax(dim=-1)
            scores = (low_rows[block] @ low_table.T).to(wide)  # (m, V)
            if bias is not None:
                scores += bias
            found = scores.div_(temperature).log_softmax(dim=-1)
            wanted = expected.exp()
            total += (wanted * (expected - found)).sum() * temperature**2
            if train:
                # d/d scores: T^2 * (student - teacher) / T
                slope = found.exp_().sub_(wanted).mul_(temperature)  # (m, V)
                low = slope.to(dtype)
                to_rows[block] = low @ low_table
                to_table += low.T @ low_rows[block]
                if to_bias is not None:
                    to_bias += slope.sum(dim=0)
        if train:
            ctx.save_for_backward(to_rows.to(rows.dtype), to_table.to(table.dtype), to_bias)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        to_rows, to_table, to_bias = ctx.saved_tensors
        return (
            to_rows * grad,
            to_table * grad,
            None if to_bias is None else to_bias * grad,
            None,
            None,
            None,
        )
