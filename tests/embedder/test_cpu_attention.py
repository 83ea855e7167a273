"""Attention by plain operations gives what the fused kernel gives, and only where it should."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from likewise.embedder import cpu_attention
from likewise.embedder.cpu_attention import short_attention

CPU = torch.device("cpu")


def tensors(length: int = 9, dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    torch.manual_seed(length)
    return [torch.randn(2, 3, length, 8, dtype=dtype).requires_grad_() for _ in range(3)]


def masks(length: int) -> dict[str, dict[str, object]]:
    keys = torch.ones(2, 1, 1, length, dtype=torch.bool)
    keys[0, ..., length // 2 :] = False
    return {
        "none": {},
        "padding": {"attn_mask": keys},
        "bias": {"attn_mask": torch.linspace(-2, 2, length).expand(2, 1, length, length)},
        "causal": {"is_causal": True},
        "scale": {"scale": 0.5},
    }


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    attend = cpu_attention._attend
    monkeypatch.setattr(
        cpu_attention, "_attend", lambda *a, **k: seen.append(a[0].shape[-2]) or attend(*a, **k)
    )
    return seen


@pytest.mark.parametrize("case", masks(9))
def test_outputs_and_gradients_are_those_of_the_definition(case: str, counted: list[int]) -> None:
    ours, reference = tensors(), [t.detach().float().requires_grad_() for t in tensors()]
    options = masks(9)[case]
    expected = F.scaled_dot_product_attention(*reference, **options)  # type: ignore[arg-type]
    with short_attention(CPU), torch.autocast("cpu", dtype=torch.bfloat16):
        found = F.scaled_dot_product_attention(*ours, **options)  # type: ignore[arg-type]
    assert counted == [9] and found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), expected, atol=0.03)
    for output in (found, expected):
        output.float().square().sum().backward()
    for one, other in zip(ours, reference, strict=True):
        assert one.grad is not None and other.grad is not None
        assert torch.allclose(one.grad.float(), other.grad, atol=0.1, rtol=0.05)


def test_dropout_drops(counted: list[int]) -> None:
    query, key, _ = tensors()
    value = torch.eye(9, 9, dtype=torch.bfloat16).expand(2, 3, 9, 9)
    with short_attention(CPU):
        weights = F.scaled_dot_product_attention(query, key, value, dropout_p=0.5).detach()
    dropped = float((weights == 0).float().mean())
    assert 0.35 < dropped < 0.65 and float(weights.sum(-1).max()) > 1.0


def test_other_calls_are_left_alone(counted: list[int]) -> None:
    long = tensors(cpu_attention.SHORT + 1)
    single = tensors(9, torch.float32)
    with short_attention(CPU):
        assert torch.equal(
            F.scaled_dot_product_attention(*single), F.scaled_dot_product_attention(*single, attn_mask=None)
        )
        F.scaled_dot_product_attention(*long)
    F.scaled_dot_product_attention(*tensors())
    assert counted == []


def test_other_devices_are_left_alone() -> None:
    with short_attention(torch.device("meta")) as mode:
        assert mode is None
