"""Static models from sentence-transformers and model2vec run here with the same vectors, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from likewise.embedder import encoder_identity, load_encoder
from likewise.embedder.encoder import Encoder
from likewise.embedder.siamese.loading import load_sentence_model
from likewise.errors import EncoderError, UsageError

TEXTS = ["How do I rotate a signing key?", "key", "如何輪換簽署金鑰？", "key " * 700, "naïve 🗝"]


def vocabulary(**truncation):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "how", "do", "i", "rotate", "a", "sign", "##ing", "key", "?"]
    words += list("如何輪換簽署金鑰")
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    if truncation:
        tokenizer.enable_truncation(**truncation)
    return tokenizer


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(21, 6)).astype(np.float32)


def saved(folder: Path, table, *, normalize=True, **truncation) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [StaticEmbedding(vocabulary(**truncation), embedding_weights=table)]
        modules += [Normalize()] if normalize else []
        model = SentenceTransformer(modules=modules, device="cpu")
        model.save(str(folder), create_model_card=False)
    return folder


def peer(folder: Path) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SentenceTransformer(str(folder), device="cpu").encode(TEXTS, normalize_embeddings=True)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("truncation", [{}, {"max_length": 4}, {"max_length": 4, "direction": "left"}])
def test_vectors_are_those_of_the_peer(tmp_path, table, normalize, truncation):
    folder = saved(tmp_path / "model", table, normalize=normalize, **truncation)
    encoder = Encoder.load(folder)
    found = encoder.embed(TEXTS, role="passage")
    np.testing.assert_allclose(found.vectors, peer(folder), atol=1e-6)
    assert (encoder.runtime, encoder.dimension) == ("static cpu float32", 6)
    assert encoder.passage_tokens == encoder.max_tokens == (4 if truncation else 1 << 20)
    assert found.truncated == ((0, 2, 3) if truncation else ())


def test_a_text_without_tokens_has_a_vector(tmp_path, table):
    table[0] = 0
    encoder = Encoder.load(saved(tmp_path / "model", table))
    vectors = encoder.encode_queries(["", " ", "key"])
    assert vectors[0].tolist() == vectors[1].tolist() == [1, 0, 0, 0, 0, 0]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])


def test_a_vector_does_not_depend_on_the_batch(tmp_path, table):
    encoder = Encoder.load(saved(tmp_path / "model", table))
    together = encoder.encode_passages(TEXTS)
    assert np.array_equal(together, np.concatenate([encoder.encode_passages([text]) for text in TEXTS]))


def test_tables_of_model2vec(tmp_path, table):
    folder = saved(tmp_path / "model", table)
    expected = Encoder.load(folder).encode_passages(TEXTS)
    mapping = np.arange(21)[::-1].copy()
    factors = np.linspace(1, 2, 21, dtype=np.float32)
    rows = (table / factors[:, None])[mapping]
    arrays = {"embeddings": rows.astype(np.float16), "mapping": mapping, "weights": factors}
    save_file(arrays, folder / "model.safetensors")
    np.testing.assert_allclose(Encoder.load(folder).encode_passages(TEXTS), expected, atol=2e-3)
    np.testing.assert_allclose(Encoder.load(folder).encode_passages(TEXTS), peer(folder), atol=1e-3)
    assert Encoder.load(folder).dimension == 6


def test_prompts_and_matryoshka_lengths(tmp_path, table):
    folder = saved(tmp_path / "model", table)
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    settings |= {"prompts": {"query": "how ", "document": ""}, "truncate_dim": 4}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = Encoder.load(folder)
    mean = (table[4] + table[11]) / 2
    expected = mean[:4] / np.linalg.norm(mean[:4])
    np.testing.assert_allclose(encoder.encode_queries(["key"])[0], expected, atol=1e-6)
    assert encoder.dimension == 4


def test_the_fingerprint_follows_the_table(tmp_path, table):
    first = encoder_identity(str(saved(tmp_path / "a", table)))
    assert first == encoder_identity(str(saved(tmp_path / "b", table)))
    assert first != encoder_identity(str(saved(tmp_path / "c", table + 1)))
    assert first != encoder_identity(str(saved(tmp_path / "d", table, max_length=4)))
    assert first == load_encoder(str(tmp_path / "a")).fingerprint


def test_torch_is_never_imported(tmp_path, table):
    folder = saved(tmp_path / "model", table)
    script = (
        "import sys\nfrom likewise import Encoder\n"
        f"Encoder.load({str(folder)!r}).encode_queries(['key'])\n"
        "heavy = ('torch', 'transformers', 'openvino', 'sentence_transformers')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.safetensors").write_bytes(b"\x05"), "cannot load the token vectors"),
        (lambda f: (f / "model.safetensors").unlink(), "expected model.safetensors"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "cannot load the tokenizer"),
        (
            lambda f: save_file({"other": np.ones(3)}, f / "model.safetensors"),
            "cannot load the token vectors",
        ),
    ],
)
def test_damage_is_named(tmp_path, table, damage, message):
    # A table of its own: tokenizers that were prepared once are kept.
    folder = saved(tmp_path / "model", table * 1.5)
    damage(folder)
    with pytest.raises(EncoderError, match=message):
        Encoder.load(folder)


@pytest.mark.parametrize("options", [{"runtime": "torch"}, {"runtime": "openvino"}, {"device": "cuda"}])
def test_nothing_but_the_cpu(tmp_path, table, options):
    with pytest.raises(UsageError, match="runs on the CPU"):
        Encoder.load(saved(tmp_path / "model", table), **options)


def test_no_pooling_and_no_training(tmp_path, table):
    folder = saved(tmp_path / "model", table)
    with pytest.raises(UsageError, match="no pooling"):
        Encoder.load(folder, pooling="cls")
    with pytest.raises(EncoderError, match="not trained on pairs"):
        load_sentence_model(folder)
