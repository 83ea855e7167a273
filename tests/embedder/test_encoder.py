"""The default encoder as people use it: order, batches, limits, odd texts, misuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.embedder import encoder_identity, load_encoder
from likewise.embedder.encoder import DEFAULT_ENCODER, Encoder
from likewise.errors import EncoderError, UsageError

# Rounding to bfloat16 may go the other way when a matrix product is summed in another order: a component of a
# unit vector then moves by about 1e-3, and the cosine stays above this.
BATCH_COSINE = 0.9999


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load()


def test_the_default_encoder(encoder: Encoder) -> None:
    assert encoder.name == DEFAULT_ENCODER
    assert encoder.dimension == 384
    assert encoder.max_tokens == 256
    assert encoder.passage_tokens == 254
    assert encoder.runtime.startswith("openvino cpu")
    assert encoder.notices == ()
    assert encoder.fingerprint == encoder_identity() == encoder_identity(DEFAULT_ENCODER)
    base = encoder_identity("all-MiniLM-L6-v2")
    assert base == encoder_identity("sentence-transformers/all-MiniLM-L6-v2") != encoder.fingerprint
    vectors = encoder.encode_passages(
        ["A cat sat on a mat.", "A feline rested on a rug.", "Bond yields rose."]
    )
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.5 > 0.1 > vectors[0] @ vectors[2]


def test_every_abstract_is_as_sentence_transformers_has_it(encoder: Encoder, data_dir: Path) -> None:
    """A sample; the whole collection is measured by the benchmarks."""
    import gzip
    import itertools

    with gzip.open(data_dir / "scifact" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = list(itertools.islice(file, 0, 640, 20))
    texts = [f"{paper['title']} {paper['text']}" for paper in map(json.loads, lines)]
    from sentence_transformers import SentenceTransformer

    from likewise.embedder.resolve import resolve

    # Those of the published model: what the default encoder knows beyond it changes nothing in English.
    expected = SentenceTransformer(str(resolve("all-MiniLM-L6-v2").directory), device="cpu").encode(texts)
    cosines = (encoder.encode_passages(texts) * expected).sum(axis=1)
    assert cosines.min() >= 0.9999


def test_order_and_batches_make_no_difference(encoder: Encoder) -> None:
    texts = [f"{'word ' * (7 * n % 90)} number {n} 第{n}個" for n in range(60)]
    together = encoder.encode_passages(texts)
    alone = np.concatenate([encoder.encode_passages([text]) for text in texts[:20]])
    assert (together[:20] * alone).sum(axis=1).min() >= BATCH_COSINE
    backwards = encoder.encode_passages(texts[::-1])[::-1]
    assert (together * backwards).sum(axis=1).min() >= BATCH_COSINE
    # Each is nearest to itself, so none changed places.
    assert ((together @ alone.T).argmax(axis=0) == np.arange(20)).all()


def test_more_texts_than_a_window(encoder: Encoder) -> None:
    texts = [f"t{n}" for n in range(1100)]
    vectors, truncated = encoder.embed([*texts, "long " * 300], role="passage")
    assert truncated == (1100,)
    again = encoder.encode_passages(["t0", "t1023", "t1024", "t1099"])
    assert (vectors[[0, 1023, 1024, 1099]] * again).sum(axis=1).min() >= BATCH_COSINE


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(), max_size=40), max_size=4))
def test_any_text_gives_a_unit_vector(encoder: Encoder, texts: list[str]) -> None:
    vectors = encoder.encode_queries(texts)
    assert vectors.shape == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(len(texts)), atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "\x00",
        "\ud83d",
        "a\udfffb",
        "🗝️👩‍👩‍👧‍👦",
        "مرحبا بالعالم",
        "\u202eabc",
        "如何輪換簽署金鑰？",
        "x" * 100_000,
    ],
    ids=[
        "empty",
        "blank",
        "nul",
        "high-surrogate",
        "low-surrogate",
        "emoji",
        "rtl",
        "override",
        "zh",
        "one-word",
    ],
)
def test_odd_texts(encoder: Encoder, text: str) -> None:
    [vector] = encoder.encode_passages([text])
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    [spans] = encoder.token_spans([text])
    assert spans.shape[1] == 2
    assert spans.max(initial=0) <= len(text)


def test_no_texts(encoder: Encoder) -> None:
    vectors, truncated = encoder.embed([], role="query")
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32
    assert truncated == ()
    assert encoder.token_spans([]) == []


def test_cut_texts_are_reported_and_equal_their_beginning(encoder: Encoder) -> None:
    fits, cut = "word " * 254, "word " * 255
    vectors, truncated = encoder.embed(["short", cut, fits, "word " * 200_000], role="passage")
    assert truncated == (1, 3)
    assert (vectors[1:] @ vectors[2]).min() >= BATCH_COSINE


def test_spaces_do_not_hide_what_follows_them(encoder: Encoder) -> None:
    """The tokenizer drops white space, so a text may be very long and still have few tokens."""
    vectors, truncated = encoder.embed(["rotate" + " " * 300_000 + "keys", "rotate keys"], role="passage")
    assert truncated == ()
    assert vectors[0] @ vectors[1] >= BATCH_COSINE


def test_misuse_is_refused(encoder: Encoder) -> None:
    with pytest.raises(UsageError, match=r"list of texts, found one string"):
        encoder.encode_queries("one text")
    with pytest.raises(UsageError, match="NoneType at position 0"):
        encoder.encode_passages([None])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="query or passage"):
        encoder.embed(["a"], role="document")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="found 'onnx'"):
        Encoder.load(runtime="onnx")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="computes on the CPU"):
        Encoder.load(runtime="openvino", device="cuda")
    with pytest.raises(UsageError, match="cpu, cuda or mps"):
        Encoder.load(runtime="torch", device="toaster")
    with pytest.raises(UsageError, match="unknown pooling 'median'"):
        Encoder.load(pooling="median")
    with pytest.raises(UsageError, match="8 to 256 tokens"):
        Encoder.load(max_tokens=1000)


def test_threads_share_an_encoder(encoder: Encoder) -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"{'more ' * n} number {n}" for n in range(24)]
    expected = encoder.encode_passages(texts)
    with ThreadPoolExecutor(4) as pool:
        found = np.concatenate(list(pool.map(lambda text: encoder.encode_passages([text]), texts)))
    assert (expected * found).sum(axis=1).min() >= BATCH_COSINE


def test_token_spans_cover_the_words(encoder: Encoder) -> None:
    text = "Rotating 金鑰, naïvely"
    [spans] = encoder.token_spans([text])
    assert spans.dtype == np.int32
    assert [text[start:end] for start, end in spans] == ["Rotating", "金鑰", ",", "naïve", "ly"]


def test_a_long_text_has_the_spans_of_its_parts(encoder: Encoder) -> None:
    text = "keys rotate. " * 45_000  # more than one piece
    [spans] = encoder.token_spans([text])
    assert len(spans) == 3 * 45_000
    assert all(text[start:end] in {"keys", "rotate", "."} for start, end in spans[::1009])
    assert (np.diff(spans[:, 0]) > 0).all()


def test_load_encoder_finds_models_too(sentence_model: Callable[..., Path]) -> None:
    folder = sentence_model("bert", prompts={"query": "Q: ", "document": "some prompt: "})
    encoder = load_encoder(str(folder))
    assert encoder.name == str(folder.resolve())
    assert encoder.fingerprint == encoder_identity(str(folder))
    # 64 less <s>, </s> and the passage prompt.
    [prompt] = encoder.token_spans(["some prompt: "])
    assert encoder.passage_tokens == 62 - len(prompt)
    text = "a" * 200
    [spans] = encoder.token_spans([text])
    fitting = text[: spans[encoder.passage_tokens - 1][1]]
    assert encoder.embed([fitting, fitting + "a" * 20], role="passage").truncated == (1,)


def test_a_torch_runtime_by_order(sentence_model: Callable[..., Path]) -> None:
    encoder = Encoder.load(sentence_model("bert"), runtime="torch", device="cpu")
    assert encoder.runtime == "torch cpu float32"
    assert "torch cpu" in repr(encoder)


def test_a_lower_token_limit(sentence_model: Callable[..., Path]) -> None:
    folder = sentence_model("bert")
    low, full = (Encoder.load(folder, runtime="torch", max_tokens=limit) for limit in (16, None))
    text = "a" * 14
    assert low.passage_tokens == 14
    assert low.fingerprint != full.fingerprint
    assert low.embed([text, text + "b"], role="query").truncated == (1,)
    np.testing.assert_allclose(low.encode_queries([text]), full.encode_queries([text]), atol=1e-6)


def test_weights_that_do_not_fit_their_config(sentence_model: Callable[..., Path]) -> None:
    folder = sentence_model("bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(EncoderError, match=r"lack \d+ of the model's tensors"):
        Encoder.load(folder)
