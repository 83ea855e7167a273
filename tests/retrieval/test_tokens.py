"""Token counters: from files, folders and names, uncut and without special tokens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from likewise.errors import UsageError
from likewise.retrieval.tokens import EncoderTokenCounter, load_token_counter


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A tokenizer that adds special tokens, cuts at four tokens and pads to sixteen."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "keys": 2, "金": 3, "鑰": 4}, "[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()  # puts spaces around Chinese characters
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken("[CLS]", special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16, pad_token="[UNK]")
    path = tmp_path / "model" / "tokenizer.json"
    path.parent.mkdir()
    tokenizer.save(str(path))
    return path


def test_file_and_folder(tokenizer_file: Path) -> None:
    for name in (tokenizer_file, str(tokenizer_file), tokenizer_file.parent):
        counter = load_token_counter(name)
        assert counter.name == str(name)
        assert counter.count("") == 0
        assert counter.count("金鑰 keys, keys") == 5
        assert counter.count("keys " * 1000) == 1000


def test_folder_with_an_older_tokenizer(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "keys", "rotate", "金", "鑰"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    counter = load_token_counter(tmp_path)
    assert counter.count("keys rotate 金鑰") == 4
    assert counter.count("keys " * 1000) == 1000


@pytest.mark.parametrize("content", ["{broken", "{}", "[]", '{"model": {"type": "Nonsense"}}', "\x00\x01"])
def test_something_else_in_the_file(tokenizer_file: Path, content: str) -> None:
    tokenizer_file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="of the tokenizers library"):
        load_token_counter(tokenizer_file)


def test_bytes_that_are_no_text(tokenizer_file: Path) -> None:
    tokenizer_file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="of the tokenizers library"):
        load_token_counter(tokenizer_file)


def test_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none that can be read"):
        load_token_counter(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["", "no/such/file.json", "a/b/c", "./missing", "../missing", "~/no-such-folder-here", "C:\\x"],
)
def test_missing_paths_never_ask_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*args: object, **options: object) -> str:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(UsageError, match="no tokenizer at"):
        load_token_counter(name)


def test_hub_id_is_looked_for_locally_first(tokenizer_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    calls: list[object] = []
    cached = {"someone/model"}

    def download(name: str, file: str, *, local_files_only: bool = False) -> str:
        calls.append((name, file, local_files_only))
        if local_files_only and name not in cached:
            raise LocalEntryNotFoundError("not cached")
        if name == "someone/nothing":
            raise OSError("no network")
        return str(shutil.copy(tokenizer_file, tokenizer_file.with_name("downloaded.json")))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert load_token_counter("someone/model").count("keys 金") == 2
    assert calls == [("someone/model", "tokenizer.json", True)]
    assert load_token_counter("someone/other").count("keys") == 1
    assert calls[1:] == [
        ("someone/other", "tokenizer.json", True),
        ("someone/other", "tokenizer.json", False),
    ]
    with pytest.raises(UsageError, match="the hub did not give it: no network"):
        load_token_counter("someone/nothing")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    calls.clear()
    with pytest.raises(UsageError, match="no tokenizer at someone/third"):
        load_token_counter("someone/third")
    assert calls == [("someone/third", "tokenizer.json", True)]


def test_encoder_is_asked_for_when_counting() -> None:
    from likewise.embedder.hash_encoder import HashEncoder

    asked: list[int] = []

    def encoder() -> HashEncoder:
        asked.append(1)
        return HashEncoder(max_tokens=4)

    counter = EncoderTokenCounter(encoder)
    assert asked == []
    assert counter.count("one two three, 四五") == 6
    assert asked == [1]
