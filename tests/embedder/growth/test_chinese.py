"""The Chinese extension as it is shipped, and the default encoder that has it."""

from __future__ import annotations

import shutil
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

from likewise import Encoder
from likewise.embedder.growth import chinese
from likewise.embedder.growth.chinese import (
    EXTENSION_SHA256,
    RESOURCES,
    Extension,
    extended_model,
    extension_digest,
    read_extension,
    write_extension,
)
from likewise.embedder.growth.directory import token_table
from likewise.embedder.resolve import BASE_ENCODER, DEFAULT_ENCODER, resolve
from likewise.errors import ChecksumMismatch

ENGLISH = [
    "How do I rotate a signing key?",
    "“Quoted” — with dashes… and naïve café",
    "Größe und Gewicht, где ключ, مفتاح",
    "x = rotate(key)  # 12.5%",
    "",
    "word " * 300,
]


@pytest.fixture(scope="module")
def base() -> Encoder:
    return Encoder.load(BASE_ENCODER)


@pytest.fixture(scope="module")
def extended() -> Encoder:
    return Encoder.load()


def test_what_is_shipped_is_small_and_says_whose_texts_it_is_from() -> None:
    assert sum(path.stat().st_size for path in RESOURCES.iterdir()) <= 5_000_000
    assert extension_digest() == EXTENSION_SHA256
    attribution = (RESOURCES / "ATTRIBUTION.md").read_text("utf-8")
    for source in ("Tatoeba", "CC BY 2.0 FR", "FastAPI", "MIT", "Unihan", "CLDR", "Unicode License V3"):
        assert source in attribution
    assert attribution.count(",") > 500, "the contributors of Tatoeba by name"


def test_characters_of_common_use_in_both_orthographies_are_known() -> None:
    extension = read_extension()
    tokens = set(extension.tokens)
    assert len(extension.tokens) == len(tokens), "no form stands for two rows"
    assert extension.rows.shape == (len(extension.forms), 384)
    level1 = [bytes([high, low]).decode("gb2312") for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFA)]
    frequent = [bytes([high, low]).decode("big5") for high in range(0xA4, 0xC6) for low in range(0x40, 0x7F)]
    assert set(level1) | set(frequent) <= tokens
    [same] = [group for group in extension.forms if "发" in group]
    assert {"发", "發", "髮"} <= set(same)
    assert sum(len(token) > 1 for token in tokens) > 5000
    # Nothing that an English text may hold.
    for token in tokens:
        assert all(unicodedata.east_asian_width(character) in "WF" for character in token), token


def test_texts_without_chinese_have_the_vectors_of_the_base_to_the_last_bit(
    base: Encoder, extended: Encoder
) -> None:
    assert (base.name, extended.name) == (BASE_ENCODER, DEFAULT_ENCODER)
    assert base.runtime == extended.runtime
    np.testing.assert_array_equal(base.encode_passages(ENGLISH), extended.encode_passages(ENGLISH))
    np.testing.assert_array_equal(base.unknown_share(ENGLISH), extended.unknown_share(ENGLISH))
    assert base.fingerprint != extended.fingerprint


def test_chinese_finds_english_in_either_orthography(base: Encoder, extended: Encoder) -> None:
    english = ["How do I bake bread?", "The train to the airport is late.", "She bought a new red coat."]
    for questions in (
        ["怎么烤面包？", "去机场的火车晚点了。", "她买了一件新的红色大衣。"],
        ["怎麼烤麵包？", "去機場的火車晚點了。", "她買了一件新的紅色大衣。"],
    ):
        scores = extended.encode_queries(questions) @ extended.encode_passages(english).T
        assert scores.argmax(axis=1).tolist() == [0, 1, 2]
        assert scores.diagonal().min() > 0.5
        assert extended.unknown_share(questions).max() == 0.0
        assert base.unknown_share(questions).min() > 0.3


def test_forms_of_a_character_have_one_row() -> None:
    table = token_table(resolve(None).directory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(resolve(None).directory))
    ids = tokenizer.convert_tokens_to_ids(["发", "發", "髮", "电话", "電話", "人"])
    np.testing.assert_array_equal(table[ids[0]], table[ids[2]])
    np.testing.assert_array_equal(table[ids[3]], table[ids[4]])
    assert ids[5] < 30522 <= min(ids[:5]), "what the base knew keeps its id"
    assert tokenizer.tokenize("電話the人") == ["電話", "the", "人"]


def test_sentence_transformers_loads_the_default_encoder(extended: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["用 Python 寫 API 的電話簿", "A phone book"]
    theirs = SentenceTransformer(str(resolve(None).directory), device="cpu").encode(texts)
    assert (extended.encode_passages(texts) * theirs).sum(axis=1).min() > 0.9999


def test_rows_are_rounded_to_127ths_of_their_largest_value(tmp_path: Path) -> None:
    rows = np.array([[1.27, -0.5, 0.004], [0.0, 0.0, 0.0]], np.float32)
    write_extension(Extension((("钥", "鑰"), ("锁",)), rows), tmp_path)
    found = read_extension(tmp_path)
    assert found.forms == (("钥", "鑰"), ("锁",)) and found.tokens == ["钥", "鑰", "锁"]
    np.testing.assert_allclose(found.rows, [[1.27, -0.5, 0.0], [0.0, 0.0, 0.0]], atol=1e-6)
    np.testing.assert_array_equal(found.expanded()[0], found.expanded()[1])


def test_a_damaged_extension_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "resources"
    shutil.copytree(RESOURCES, copy)
    with (copy / "chinese.safetensors").open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\x00\x01\x02")
    monkeypatch.setattr(chinese, "RESOURCES", copy)
    with pytest.raises(ChecksumMismatch, match="SHA-256") as caught:
        read_extension(copy)
    assert "install likewise again" in (caught.value.remedy or "")


def test_the_extended_model_is_made_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    base = resolve(BASE_ENCODER)
    with pytest.raises(ChecksumMismatch, match="others"):
        extended_model(base.directory, weights_sha256="0" * 64)
    made, digest = extended_model(base.directory, weights_sha256=base.weights_sha256)
    assert made.parent == tmp_path / "models"
    changed = (made / "model.safetensors").stat().st_mtime_ns
    assert extended_model(base.directory, weights_sha256=base.weights_sha256) == (made, digest)
    assert (made / "model.safetensors").stat().st_mtime_ns == changed
    assert [path.name for path in made.parent.iterdir()] == [made.name], "nothing half made is left"
    # The same rows everywhere, whatever machine made them.
    np.testing.assert_array_equal(token_table(made), token_table(resolve(None).directory))


def test_the_extended_model_where_the_cache_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    made, _ = extended_model(resolve(BASE_ENCODER).directory)
    assert (made / "modules.json").is_file() and not made.is_relative_to(tmp_path)
    assert extended_model(resolve(BASE_ENCODER).directory)[0] == made, "once in a process"
