from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.embedder.bert import Bert, BertConfig
from likewise.embedder.packed_attention import Packing, attend_packed
from likewise.errors import UsageError

SMALL = BertConfig(
    vocab_size=50,
    hidden_size=24,
    layers=2,
    heads=3,
    ffn_size=40,
    max_positions=16,
    dropout=0.0,
    attention_dropout=0.0,
)
SHAPES = {
    "post": SMALL,
    "pre": replace(SMALL, norm="pre"),
    "causal": replace(SMALL, causal=True),
    "gpt": replace(SMALL, causal=True, norm="pre", segments=0, activation="gelu_tanh"),
    "albert": replace(SMALL, embedding_size=8, shared_layers=True, layers=3),
}


def model_of(config: BertConfig) -> Bert:
    torch.manual_seed(1)
    model = Bert(config).eval()
    with torch.no_grad():  # initial biases of 0 and norms of 1 would hide mistakes
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def ids_of(*lengths: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(0, 50, (length,), generator=generator) for length in lengths]


def by_hand(model: Bert, ids: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """The post-LN model of one sequence, token by token and head by head, in plain arithmetic."""
    config = model.config

    def norm(x: torch.Tensor, layer: torch.nn.LayerNorm) -> torch.Tensor:
        mean = sum(x.tolist()) / len(x)
        variance = sum((value - mean) ** 2 for value in x.tolist()) / len(x)
        return (x - mean) / math.sqrt(variance + config.norm_epsilon) * layer.weight + layer.bias

    def gelu(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()], dtype=x.dtype)

    table = model.embeddings
    xs = [
        norm(table.token.weight[t] + table.position.weight[i] + table.segment.weight[s], table.norm)
        for i, (t, s) in enumerate(zip(ids.tolist(), segments.tolist(), strict=True))
    ]
    size = config.head_size
    for layer in model.layers:
        hidden = config.hidden_size
        weight, bias = layer.attention.qkv.weight, layer.attention.qkv.bias
        q, k, v = (
            [weight[n * hidden : (n + 1) * hidden] @ x + bias[n * hidden : (n + 1) * hidden] for x in xs]
            for n in range(3)
        )
        mixed = []
        for i in range(len(xs)):
            heads = []
            for h in range(config.heads):
                part = slice(h * size, (h + 1) * size)
                seen = range(i + 1) if config.causal else range(len(xs))
                scores = [math.exp(float(q[i][part] @ k[j][part]) / math.sqrt(size)) for j in seen]
                heads.append(sum(s / sum(scores) * v[j][part] for s, j in zip(scores, seen, strict=True)))
            mixed.append(torch.cat(heads))
        out, ffn = layer.attention.output, layer.ffn
        xs = [
            norm(x + out.weight @ m + out.bias, layer.attention_norm) for x, m in zip(xs, mixed, strict=True)
        ]
        xs = [
            norm(
                x + ffn.narrow.weight @ gelu(ffn.widen.weight @ x + ffn.widen.bias) + ffn.narrow.bias,
                layer.ffn_norm,
            )
            for x in xs
        ]
    return torch.stack(xs)


@pytest.mark.parametrize("name", ["post", "causal"])
def test_equals_the_formula_written_out(name: str) -> None:
    model = model_of(SHAPES[name]).double()
    [ids] = ids_of(5)
    segments = torch.tensor([0, 0, 0, 1, 1])
    with torch.no_grad():
        found = model(ids[None], segments[None])[0]
        torch.testing.assert_close(found, by_hand(model, ids, segments), atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("name", SHAPES)
def test_padding_does_not_change_results(name: str) -> None:
    model = model_of(SHAPES[name])
    short, long = ids_of(4, 11)
    batch = torch.stack([torch.cat([short, torch.full((7,), 49)]), long])
    mask = torch.tensor([[True] * 4 + [False] * 7, [True] * 11])
    with torch.no_grad():
        padded = model(batch, mask=mask)
        torch.testing.assert_close(padded[0, :4], model(short[None])[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(padded[1], model(long[None])[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
@given(st.lists(st.integers(1, 16), min_size=1, max_size=7))
@settings(max_examples=15, deadline=None)
def test_packed_equals_one_by_one(name: str, lengths: list[int]) -> None:
    model = model_of(SHAPES[name])
    texts = ids_of(*lengths)
    segments = [torch.arange(len(text)) % 2 for text in texts] if SHAPES[name].segments else None
    with torch.no_grad():
        packed = model(
            torch.cat(texts)[None], torch.cat(segments)[None] if segments else None, lengths=lengths
        )[0]
        alone = [model(t[None], segments[i][None] if segments else None)[0] for i, t in enumerate(texts)]
    torch.testing.assert_close(packed, torch.cat(alone), atol=1e-5, rtol=1e-5)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_both_ways_of_packed_attention_agree_with_their_gradients(lengths: list[int], causal: bool) -> None:
    results = []
    for way in ("runs", "padded"):
        generator = torch.Generator().manual_seed(sum(lengths))
        qkv = torch.randn(sum(lengths), 3, 2, 4, generator=generator, dtype=torch.float32).requires_grad_()
        out = attend_packed(qkv, Packing.of(lengths, qkv.device, way), causal=causal)
        (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
        results.append((out.detach(), qkv.grad))
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("lengths", [None, [4, 7, 5]])
def test_tokens_to_keep_are_those_of_the_whole_result(name: str, lengths: list[int] | None) -> None:
    model = model_of(SHAPES[name])
    ids = torch.stack(ids_of(16)) if lengths else torch.stack(ids_of(8, 8))
    for keep in (torch.tensor([3, 0, 15]), torch.tensor([], dtype=torch.long)):
        with torch.no_grad():
            whole = model(ids, lengths=lengths).flatten(0, 1)
            kept = model(ids, lengths=lengths, keep=keep)
        assert kept.shape == (len(keep), 24)
        torch.testing.assert_close(kept, whole[keep], atol=1e-5, rtol=1e-5)


def test_packed_attention_in_bfloat16_autocast_stays_near_float32() -> None:
    model = model_of(SHAPES["post"])
    texts = ids_of(9, 9, 4)
    with torch.no_grad():
        exact = model(torch.cat(texts)[None], lengths=[9, 9, 4])
        with torch.autocast("cpu", torch.bfloat16):
            low = model(torch.cat(texts)[None], lengths=[9, 9, 4])
    assert torch.nn.functional.cosine_similarity(exact, low.float(), dim=-1).min() > 0.999


@pytest.mark.parametrize("name", ["causal", "gpt"])
def test_causal_model_never_sees_the_future(name: str) -> None:
    model = model_of(SHAPES[name])
    [ids] = ids_of(8)
    changed = ids.clone()
    changed[5] = (changed[5] + 1) % 50
    with torch.no_grad():
        before, after = model(ids[None])[0], model(changed[None])[0]
    assert torch.equal(before[:5], after[:5])
    assert (before[5:] - after[5:]).abs().amax(dim=-1).min() > 1e-4
    # The gradient of token 3 reaches the tokens up to 3 and no other.
    vectors = model.embeddings.token(ids[None]).detach().requires_grad_()
    hook = model.embeddings.token.register_forward_hook(lambda *_: vectors)
    model(ids[None])[0, 3].sum().backward()
    hook.remove()
    reached = vectors.grad[0].abs().amax(dim=-1) > 0
    assert reached.tolist() == [True] * 4 + [False] * 4


def test_bidirectional_model_sees_both_sides() -> None:
    model = model_of(SMALL)
    [ids] = ids_of(8)
    for changed_at in (0, 7):
        changed = ids.clone()
        changed[changed_at] = (changed[changed_at] + 1) % 50
        with torch.no_grad():
            moved = (model(ids[None]) - model(changed[None]))[0].abs().amax(dim=-1)
        assert moved.min() > 1e-4


def test_order_matters_and_segments_matter() -> None:
    model = model_of(SMALL)
    [ids] = ids_of(6)
    with torch.no_grad():
        forwards = model(ids[None])[0].mean(dim=0)
        backwards = model(ids.flip(0)[None])[0].mean(dim=0)
        zeros = model(ids[None], torch.zeros(1, 6, dtype=torch.long))[0]
        ones = model(ids[None], torch.ones(1, 6, dtype=torch.long))[0]
    assert (forwards - backwards).abs().max() > 1e-3
    torch.testing.assert_close(model(ids[None])[0], zeros)
    assert (zeros - ones).abs().max() > 1e-3


def test_shared_layers_are_one_layer_used_three_times() -> None:
    config = SHAPES["albert"]
    shared = model_of(config)
    assert len(shared.layers) == 1
    unshared = Bert(replace(config, shared_layers=False)).eval()
    state = shared.state_dict()
    for name in unshared.state_dict():
        if name.startswith("layers."):
            state[name] = state["layers.0." + name.split(".", 2)[2]]
    unshared.load_state_dict(state)
    [ids] = ids_of(7)
    with torch.no_grad():
        torch.testing.assert_close(shared(ids[None]), unshared(ids[None]))


def test_dropout_is_off_in_evaluation_and_on_in_training() -> None:
    model = Bert(replace(SMALL, dropout=0.5, attention_dropout=0.5))
    [ids] = ids_of(6)
    assert torch.equal(model.eval()(ids[None]), model(ids[None]))
    model.train()
    assert not torch.equal(model(ids[None]), model(ids[None]))
    assert not torch.equal(model(ids[None], lengths=[4, 2]), model(ids[None], lengths=[4, 2]))


def test_one_token_is_enough() -> None:
    model = model_of(SMALL)
    assert model(torch.tensor([[3]])).shape == (1, 1, 24)
    assert torch.isfinite(model(torch.tensor([[3]]), lengths=[1])).all()


def test_too_long_a_sequence_is_refused_but_not_a_long_packed_row() -> None:
    model = model_of(SMALL)
    with pytest.raises(UsageError, match="at most 16 tokens, found one of 17"):
        model(torch.zeros(1, 17, dtype=torch.long))
    with pytest.raises(UsageError, match="at most 16 tokens, found one of 17"):
        model(torch.zeros(1, 20, dtype=torch.long), lengths=[3, 17])
    assert model(torch.zeros(1, 40, dtype=torch.long), lengths=[16, 16, 8]).shape == (1, 40, 24)


def test_lengths_that_do_not_fit_the_row_are_refused() -> None:
    model = model_of(SMALL)
    ids = torch.zeros(1, 5, dtype=torch.long)
    with pytest.raises(UsageError, match="one row of 4 packed tokens without a mask, found 1 of 5"):
        model(ids, lengths=[2, 2])
    with pytest.raises(UsageError, match="found 2 of 5"):
        model(ids.expand(2, 5), lengths=[5])
    with pytest.raises(UsageError, match="found 1 of 5 with a mask"):
        model(ids, mask=torch.ones(1, 5, dtype=torch.bool), lengths=[5])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers: expected at least 1, found 0"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"heads": 5}, "divisible by the 5 heads, found 24"),
        ({"segments": -1}, "segments >= 0"),
        ({"embedding_size": 0}, "embedding size >= 1"),
        ({"dropout": 1.0}, r"dropout: expected a number in \[0, 1\), found 1.0"),
        ({"norm": "both"}, "norm: expected one of post, pre, found 'both'"),
        ({"activation": "relu"}, "activation"),
    ],
)
def test_impossible_shapes_are_refused(changes, message) -> None:
    with pytest.raises(UsageError, match=message):
        replace(SMALL, **changes)


def test_config_round_trip_and_unknown_keys() -> None:
    config = SHAPES["albert"]
    assert BertConfig.from_dict(config.to_dict()) == config
    with pytest.raises(UsageError, match="unknown model setting: colour, size"):
        BertConfig.from_dict({**config.to_dict(), "size": 3, "colour": "red"})


def test_initial_weights_have_the_stated_spread() -> None:
    torch.manual_seed(0)
    model = Bert(BertConfig(vocab_size=400, hidden_size=128, layers=8, heads=2, ffn_size=256, norm="pre"))
    assert float(model.embeddings.token.weight.detach().std()) == pytest.approx(0.02, rel=0.05)
    assert float(model.layers[3].ffn.widen.weight.detach().std()) == pytest.approx(0.02, rel=0.05)
    assert float(model.layers[3].ffn.narrow.weight.detach().std()) == pytest.approx(0.02 / 4, rel=0.05)
    assert model.layers[0].attention.qkv.bias.abs().max() == 0
    assert torch.equal(model.final_norm.weight, torch.ones(128))


def test_model_without_pooler_says_so() -> None:
    with pytest.raises(UsageError, match="no pooler"):
        Bert(replace(SMALL, pooler=False)).pool(torch.zeros(1, 24))
