"""Text files of any size as documents."""

from __future__ import annotations

import pytest

from likewise.embedder import plain_documents
from likewise.embedder.plain_documents import (
    cut_stream,
    cut_text,
    files_fingerprint,
    find_files,
    read_files,
)
from likewise.errors import DataError


class TestPlainFiles:
    def test_a_folder(self, tmp_path):
        (tmp_path / "a.txt").write_text("first", "utf-8")
        (tmp_path / "b.md").write_text("第二", "utf-8")
        (tmp_path / "c.png").write_bytes(b"\0")
        files = find_files([tmp_path])
        assert [document.text for document in read_files(files)] == ["first", "第二"]
        before = files_fingerprint(files)
        (tmp_path / "a.txt").write_text("changed", "utf-8")
        assert files_fingerprint(files) != before

    @pytest.mark.parametrize("content", [b"text\0binary", b"caf\xe9 latin-1", b"\x1f\x8bbroken gzip"])
    def test_binary_files_are_named(self, tmp_path, content):
        path = tmp_path / "x.txt"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"x\.txt"):
            list(read_files([path]))

    def test_nothing_there(self, tmp_path):
        with pytest.raises(DataError, match="expected text files"):
            find_files([tmp_path])
        with pytest.raises(DataError, match="no file or folder"):
            find_files([tmp_path / "none"])

    @pytest.mark.parametrize("text", ["a" * 500, "line\n" * 100, "paragraph text\n\n" * 40, "", "中文" * 99])
    def test_cutting_keeps_every_character(self, text):
        parts = list(cut_text(text, longest=60))
        assert "".join(parts) == text
        assert all(0 < len(part) <= 120 for part in parts)

    @pytest.mark.parametrize("text", ["a" * 500, "line\n" * 100, "par\n\n" * 140, "", "中文\n \n字" * 50])
    @pytest.mark.parametrize("block", [1, 7, 64, 1000])
    def test_a_stream_is_cut_where_the_whole_text_is(self, text, block):
        blocks = (text[at : at + block] for at in range(0, len(text), block))
        assert list(cut_stream(blocks, longest=60)) == list(cut_text(text, longest=60))

    def test_characters_across_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr(plain_documents, "_BLOCK", 2)  # each of these takes three bytes
        (tmp_path / "a.txt").write_text("\ufeff中文金鑰", "utf-8")
        assert [document.text for document in read_files([tmp_path / "a.txt"])] == ["中文金鑰"]
