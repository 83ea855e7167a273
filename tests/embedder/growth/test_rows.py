"""A token table of which some rows are trained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likewise.embedder.growth.rows import PartlyTrained
from likewise.embedder.siamese.losses.crosslingual import crosslingual
from likewise.errors import UsageError


def test_only_the_given_rows_change_and_forms_share_one() -> None:
    torch.manual_seed(0)
    table = nn.Embedding(6, 3)
    before = table.weight.detach().clone()
    partly = PartlyTrained(table, [[1, 4], [5]])
    optimizer = torch.optim.AdamW([p for p in partly.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        partly(torch.tensor([[0, 1, 5], [2, 4, 5]])).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    after = partly.merged()
    assert after.weight.requires_grad
    torch.testing.assert_close(after.weight[[0, 2, 3]], before[[0, 2, 3]], rtol=0, atol=0)
    assert torch.equal(after.weight[1], after.weight[4])
    assert not torch.equal(after.weight[5], before[5])
    ids = torch.tensor([0, 1, 2, 3, 4, 5])
    assert torch.equal(after(ids), partly(ids))


def test_the_gradient_of_a_shared_row_is_the_sum() -> None:
    partly = PartlyTrained(nn.Embedding(3, 2), [[1, 2]])
    partly(torch.tensor([0, 1, 2, 2])).sum().backward()
    assert partly.rows.grad is not None and partly.rows.grad.tolist() == [[3.0, 3.0]]
    assert partly.weight.grad is None


@pytest.mark.parametrize("groups", [[], [[]], [[1], [1]], [[0, 3]], [[-1]]])
def test_ids_that_make_no_sense(groups: list[list[int]]) -> None:
    with pytest.raises(UsageError):
        PartlyTrained(nn.Embedding(3, 2), groups)


def test_the_loss_by_hand() -> None:
    teacher = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = torch.tensor([[0.6, 0.8], [0.0, 1.0]])
    own = torch.tensor([[0.8, 0.6], [0.0, 1.0]])
    # Cosines of the translations with both originals, times 2: (1.2, 1.6) and (0, 2).
    contrast = torch.tensor([[1.2, 1.6], [0.0, 2.0]]).logsumexp(dim=1) - torch.tensor([1.2, 2.0])
    expected = torch.tensor([0.4, 0.0]) + 0.5 * contrast + 3 * torch.tensor([0.2, 0.0])
    loss = crosslingual(found, teacher, originals=own, contrast=0.5, hold=3.0, scale=2.0)
    torch.testing.assert_close(loss, expected)


def test_originals_that_mean_the_same_are_no_negatives() -> None:
    teacher = torch.tensor([[1.0, 0.0], [0.999, 0.0447]])
    loss = crosslingual(teacher.flip(0), teacher, contrast=1.0)
    assert float(loss.max()) < 0.01


def test_the_teacher_gets_no_gradient() -> None:
    teacher = torch.eye(2, requires_grad=True)
    student = torch.ones(2, 2, requires_grad=True)
    crosslingual(student, teacher).sum().backward()
    assert teacher.grad is None
    assert student.grad is not None and float(student.grad.abs().max()) > 0.1
