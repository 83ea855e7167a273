from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from likewise.embedder.attention import (
    AttentionMatrices,
    attention_of,
    attention_of_text,
    draw_heat_map,
    render_text,
)
from likewise.embedder.bert import Bert, BertConfig
from likewise.embedder.hf_export import to_hugging_face
from likewise.errors import MissingExtra, UsageError

CONFIG = BertConfig(vocab_size=40, hidden_size=16, layers=3, heads=2, ffn_size=20, max_positions=12)
TOKENS = ["[CLS]", "ein", "$x$", "北", "[SEP]"]
IDS = [1, 7, 8, 9, 2]


def model_of(config: BertConfig = CONFIG) -> Bert:
    torch.manual_seed(2)
    model = Bert(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return model


def test_rows_are_distributions_and_both_sides_are_seen() -> None:
    found = attention_of(model_of(), TOKENS, IDS)
    assert found.weights.shape == (3, 2, 5, 5)
    assert found.weights.dtype == np.float32
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1.0, atol=1e-5)
    assert (found.weights > 0).all()


def test_causal_model_fills_the_lower_triangle_only() -> None:
    found = attention_of(model_of(replace(CONFIG, causal=True)), TOKENS, IDS)
    above = np.triu(np.ones((5, 5), dtype=bool), k=1)
    assert (found.weights[..., above] == 0).all()
    assert (found.weights[..., ~above] > 0).all()
    np.testing.assert_allclose(found.weights[:, :, 0, 0], 1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"causal": True},
        {"causal": True, "norm": "pre", "segments": 0, "pooler": False},
        {"embedding_size": 8, "shared_layers": True},
    ],
)
def test_matrices_equal_those_of_hugging_face(changes) -> None:
    model = model_of(replace(CONFIG, **changes))
    theirs = to_hugging_face(model.eval())
    theirs.set_attn_implementation("eager")
    with torch.no_grad():
        expected = theirs(torch.tensor([IDS]), output_attentions=True).attentions
    found = attention_of(model, TOKENS, IDS)
    np.testing.assert_allclose(found.weights, torch.cat(expected).numpy(), atol=1e-5)


def test_values_that_the_matrix_mixes_are_what_the_fused_kernel_gives() -> None:
    model = model_of(replace(CONFIG, layers=1)).eval()
    layer = model.layers[0].attention
    x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        values = layer.qkv(x)[..., 32:].view(1, 5, 2, 8).transpose(1, 2)
        mixed = (layer.matrix(x, None) @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(layer.output(mixed), layer(x, None, None), atol=1e-5, rtol=1e-5)


def test_padding_gets_no_attention() -> None:
    model = model_of().eval()
    mask = torch.tensor([[True, True, True, False, False]])
    with torch.no_grad():
        padded = model.attention_matrices(torch.tensor([IDS]), mask=mask)
        alone = model.attention_matrices(torch.tensor([IDS[:3]]))
    assert (padded[..., 3:] == 0).all()
    torch.testing.assert_close(padded[:, :, :, :3, :3], alone, atol=1e-5, rtol=1e-5)


def test_model_is_left_in_the_mode_it_was_in() -> None:
    model = model_of(replace(CONFIG, dropout=0.5)).train()
    first, second = attention_of(model, TOKENS, IDS), attention_of(model, TOKENS, IDS)
    assert model.training
    np.testing.assert_array_equal(first.weights, second.weights)


def test_text_goes_through_the_tokenizer() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    plain = Tokenizer(
        models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "北": 4}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    plain.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")
    assert attention_of_text(model_of(), tokenizer, "hello 北").tokens == ("[CLS]", "hello", "北", "[SEP]")
    assert attention_of_text(model_of(), tokenizer, "").weights.shape == (3, 2, 2, 2)


def test_bad_requests() -> None:
    model = model_of()
    with pytest.raises(UsageError, match="at least one; found 0 and 0"):
        attention_of(model, [], [])
    with pytest.raises(UsageError, match="found 2 and 3"):
        attention_of(model, ["a", "b"], [1, 2, 3])
    with pytest.raises(UsageError, match="at most 12 tokens, found one of 13"):
        attention_of(model, ["a"] * 13, [1] * 13)
    found = attention_of(model, TOKENS, IDS)
    with pytest.raises(UsageError, match="a layer from 0 to 2, found 3"):
        found.mean(layer=3)
    with pytest.raises(UsageError, match="a head from 0 to 1, found -3"):
        found.mean(head=-3)


def test_mean_over_layers_and_heads() -> None:
    weights = np.arange(2 * 2 * 1 * 1, dtype=np.float32).reshape(2, 2, 1, 1)
    matrices = AttentionMatrices(("a",), weights)
    assert matrices.mean() == 1.5
    assert matrices.mean(layer=1) == 2.5
    assert matrices.mean(head=0) == 1.0
    assert matrices.mean(layer=-1, head=-1) == 3.0


def test_text_table() -> None:
    table = render_text(np.array([[0.125, 0.875], [0.5, 0.5]], dtype=np.float32), ["[CLS]", "北"])
    assert table.splitlines() == ["      [CLS]     北", "[CLS]    12    88", "    北    50    50"]


def test_heat_map_is_a_png_also_with_chinese_and_dollar_signs(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    found = attention_of(model_of(), TOKENS, IDS)
    draw_heat_map(found, tmp_path / "all.png")
    draw_heat_map(found, tmp_path / "one.png", layer=-1)
    for name in ("all.png", "one.png"):
        data = (tmp_path / name).read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(data) > 2000
    with pytest.raises(UsageError, match="a layer from 0 to 2, found 9"):
        draw_heat_map(found, tmp_path / "none.png", layer=9)
    assert not (tmp_path / "none.png").exists()


def test_heat_map_without_matplotlib_names_the_extra(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("likewise.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"drawing attention needs matplotlib"):
        draw_heat_map(attention_of(model_of(), TOKENS, IDS), tmp_path / "x.png")
