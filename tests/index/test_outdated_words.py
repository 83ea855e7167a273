"""An index of another analyser says so when searched, and the next sync mends it though no file changed."""

from __future__ import annotations

from pathlib import Path

from likewise.index.analyzer_version import ANALYZER_VERSION
from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.retrieval.search import Retriever


def test_an_index_of_another_analyser(tmp_path: Path) -> None:
    (tmp_path / "zh.md").write_text("簽署金鑰每年輪替一次。", encoding="utf-8")
    folder = tmp_path / ".likewise"
    with Index.open(folder, encoder="hash") as index:
        index.sync([tmp_path])
        assert Retriever(index).search("签署金钥", mode="lexical").notices == ()
    with Catalogue.open(folder, mode="write") as catalogue:
        # As an analyser left it that does not fold.
        catalogue.connection.execute("UPDATE passage_terms SET body = '簽 簽署 署 署金 金 金鑰 鑰'")
        catalogue.set_meta({"analyzer_version": "1"})
    with Index.open(folder) as index:
        result = Retriever(index).search("金鑰", mode="lexical")
        assert not result and "made by another version of the analyser" in result.notices[0]
        assert not index.sync().changed
        result = Retriever(index).search("金鑰", mode="lexical")
        assert len(result) == 1 and result.notices == ()
        with Catalogue.open(folder, mode="read") as catalogue:
            assert catalogue.meta()["analyzer_version"] == ANALYZER_VERSION
