"""Growing a model's vocabulary on disk."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from likewise import Encoder
from likewise.embedder.growth.directory import grow_directory, token_table
from likewise.errors import EncoderError, UsageError

TOKENS = ["钥", "鑰", "钥匙", "鑰匙", "门"]
TEXTS = ["Turn the old key", "a red door, new locks.", "", "the", "unknownword 12"]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(TOKENS), 32)).astype(np.float32)


@pytest.fixture(scope="module")
def grown(english_model: Path, rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("grown")
    grow_directory(english_model, target, TOKENS, rows)
    return target


def test_old_rows_stay_and_new_ones_are_put_in(english_model: Path, grown: Path, rows: np.ndarray) -> None:
    before, after = token_table(english_model), token_table(grown)
    door = json.loads((grown / "tokenizer.json").read_bytes())["model"]["vocab"]["门"]
    assert door < len(before), "a character that was known keeps its id"
    assert len(after) == len(before) + 4
    kept = np.delete(np.arange(len(before)), door)
    np.testing.assert_array_equal(after[kept], before[kept])
    np.testing.assert_array_equal(after[door], rows[4])
    # Characters come before words, as the lines of vocab.txt are numbered.
    np.testing.assert_array_equal(after[len(before) :], rows[:4])


def test_vectors_without_new_tokens_are_equal_to_the_last_bit(english_model: Path, grown: Path) -> None:
    before, after = Encoder.load(english_model, runtime="torch"), Encoder.load(grown, runtime="torch")
    np.testing.assert_array_equal(before.encode_passages(TEXTS), after.encode_passages(TEXTS))
    assert before.fingerprint != after.fingerprint
    assert not np.array_equal(before.encode_passages(["门"]), after.encode_passages(["门"]))


def test_new_tokens_are_one_token_each_and_the_longest_wins(english_model: Path, grown: Path) -> None:
    before, after = Encoder.load(english_model, runtime="torch"), Encoder.load(grown, runtime="torch")
    text = "the钥匙 鑰,门鑰匙x"
    found = [text[start:end] for start, end in after.token_spans([text])[0].tolist()]
    assert found == ["the", "钥匙", "鑰", ",", "门", "鑰匙", "x"]
    assert before.unknown_share(["钥匙门"]).tolist() == [pytest.approx(2 / 3)]
    assert after.unknown_share(["钥匙门"]).tolist() == [0.0]


def test_transformers_and_sentence_transformers_load_it(grown: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import AutoTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = AutoTokenizer.from_pretrained(str(grown))
        theirs = SentenceTransformer(str(grown), device="cpu").encode(["旧 the 钥匙 门", *TEXTS])
    assert tokenizer.tokenize("the钥匙鑰") == ["the", "钥匙", "鑰"]
    assert tokenizer.convert_tokens_to_ids(["钥", "鑰", "钥匙", "鑰匙"]) == list(range(22, 26))
    ours = Encoder.load(grown, runtime="torch").encode_passages(["旧 the 钥匙 门", *TEXTS])
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_a_byte_level_vocabulary_gets_added_tokens(sentence_model, tmp_path: Path) -> None:
    source = sentence_model("roberta")
    before = len(token_table(source))
    ids = grow_directory(source, tmp_path / "grown", ["钥", "钥匙"], np.ones((2, 32), np.float32))
    assert ids == {"钥": before, "钥匙": before + 1}
    encoder = Encoder.load(tmp_path / "grown", runtime="torch")
    assert [span.tolist() for span in encoder.token_spans(["钥匙钥"])[0]] == [[0, 2], [2, 3]]
    np.testing.assert_array_equal(
        encoder.encode_passages(TEXTS), Encoder.load(source, runtime="torch").encode_passages(TEXTS)
    )


def test_it_can_grow_again(grown: Path, tmp_path: Path) -> None:
    """A character cannot follow in `vocab.txt` any more, as the numbers there are those of words."""
    rows = np.random.default_rng(1).normal(size=(3, 32)).astype(np.float32)
    ids = grow_directory(grown, tmp_path / "again", ["锁", "钥", "门锁"], rows)
    assert ids == {"锁": 26, "钥": 22, "门锁": 27}
    np.testing.assert_array_equal(token_table(tmp_path / "again")[[26, 22, 27]], rows)
    once, twice = Encoder.load(grown, runtime="torch"), Encoder.load(tmp_path / "again", runtime="torch")
    texts = [*TEXTS, "the钥匙鑰", "鑰匙"]
    np.testing.assert_array_equal(once.encode_passages(texts), twice.encode_passages(texts))
    text = "the锁钥匙门锁"
    found = [text[start:end] for start, end in twice.token_spans([text])[0].tolist()]
    assert found == ["the", "锁", "钥匙", "门锁"]


@pytest.mark.parametrize("tokens", [["a b"], [""], ["钥", "钥"]])
def test_tokens_that_make_no_sense(english_model: Path, tmp_path: Path, tokens: list[str]) -> None:
    with pytest.raises(UsageError, match="different tokens without white space"):
        grow_directory(english_model, tmp_path, tokens, np.zeros((len(tokens), 32), np.float32))


def test_rows_that_do_not_fit(english_model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a row for each of 1 tokens, found 2"):
        grow_directory(english_model, tmp_path, ["钥"], np.zeros((2, 32), np.float32))
    with pytest.raises(UsageError, match="rows of width 32, found 8"):
        grow_directory(english_model, tmp_path, ["钥"], np.zeros((1, 8), np.float32))


def test_a_model_without_a_fast_tokenizer(english_model: Path, tmp_path: Path) -> None:
    source = tmp_path / "slow"
    shutil.copytree(english_model, source)
    (source / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"tokenizer\.json") as caught:
        grow_directory(source, tmp_path / "grown", ["钥"], np.zeros((1, 32), np.float32))
    assert "fast tokenizer" in (caught.value.remedy or "")


def test_weights_in_another_format(english_model: Path, tmp_path: Path) -> None:
    source = tmp_path / "pickled"
    shutil.copytree(english_model, source)
    (source / "model.safetensors").rename(source / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"one model\.safetensors, found pytorch_model\.bin"):
        token_table(source)
