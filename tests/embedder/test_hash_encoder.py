"""The model-free double: unit vectors, similar for similar texts, the same on every machine."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder import load_encoder
from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import EncoderNotFound, UsageError

ENCODER = HashEncoder()


@given(st.lists(st.text(st.characters()), max_size=5))
def test_any_text_gives_a_unit_vector(texts: list[str]) -> None:
    vectors = ENCODER.encode_passages(texts)
    assert vectors.shape == (len(texts), 64)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(len(texts)), atol=1e-6)


@given(st.text(st.characters()))
def test_spans_are_ascending_and_inside_the_text(text: str) -> None:
    [spans] = ENCODER.token_spans([text])
    assert spans.dtype == np.int32
    assert spans.shape[1] == 2
    edges = spans.ravel().tolist()
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)


def test_a_vector_does_not_depend_on_its_batch() -> None:
    alone = ENCODER.encode_passages(["rotate the key"])
    np.testing.assert_array_equal(ENCODER.encode_passages(["x", "rotate the key", "y"])[1], alone[0])


def test_similar_texts_are_near() -> None:
    english = ENCODER.encode_passages(["rotate a signing key", "signing keys are rotated", "tomato soup"])
    assert english[0] @ english[1] > english[0] @ english[2] + 0.3
    chinese = ENCODER.encode_passages(["如何輪換簽署金鑰", "簽署金鑰的輪換", "番茄湯的做法"])
    assert chinese[0] @ chinese[1] > chinese[0] @ chinese[2] + 0.3


def test_one_feature_is_the_whole_vector() -> None:
    # A single CJK character has one feature, so one counter of size 1.
    [vector] = ENCODER.encode_passages(["貓"])
    assert sorted(np.abs(vector).tolist())[-2:] == [0.0, 1.0]


def test_width_and_case_make_no_difference() -> None:
    full, half = ENCODER.encode_passages(["ＫＥＹ", "key"])
    np.testing.assert_array_equal(full, half)


def test_long_texts_are_cut_and_reported() -> None:
    encoder = HashEncoder(max_tokens=3)
    vectors, truncated = encoder.embed(["a b c d", "a b c"], role="passage")
    assert truncated == (0,)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert len(encoder.token_spans(["a b c d"])[0]) == 4


def test_names_round_trip() -> None:
    for name in ("hash", "hash:32", "hash:32:16"):
        encoder = load_encoder(name)
        assert encoder.name == name
        assert encoder.fingerprint == HashEncoder.from_name(name).fingerprint
    fingerprints = {load_encoder(name).fingerprint for name in ("hash", "hash:32", "hash:32:16")}
    assert len(fingerprints) == 3


@pytest.mark.parametrize("name", ["hash:", "hash:0", "hash:x", "hash:8:0", "hash:8:8:8", "hash:9999999"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(EncoderNotFound, match="hash:DIMENSION"):
        load_encoder(name)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(UsageError, match="found one string"):
        ENCODER.encode_queries("one text")
    with pytest.raises(UsageError, match="int at position 1"):
        ENCODER.encode_queries(["a", 7])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="at least 1"):
        HashEncoder(dimension=0)


def test_another_process_computes_the_same_vector() -> None:
    """Python's own `hash` differs between processes; a stored vector must not."""
    program = (
        "from likewise.embedder.hash_encoder import HashEncoder as H;"
        "print(H().encode_passages(['the 貓 sat']).tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ENCODER.encode_passages(["the 貓 sat"]).tobytes().hex()
