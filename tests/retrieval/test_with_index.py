"""The whole path over a real index: files on disk to hits, context and a checked answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import IndexNotFound, UsageError
from likewise.index.index import Index
from likewise.retrieval.answer import answer
from likewise.retrieval.context import pack_context
from likewise.retrieval.filters import parse_filter
from likewise.retrieval.generators.echo import EchoGenerator
from likewise.retrieval.search import Retriever

FILES = {
    "docs/keys.md": "---\nauthor: Ann\n---\n# Keys\n\nSigning keys rotate every year.\n\n## Leaks\n\n"
    + "A leaked key is revoked at once. "
    + " ".join(f"Step {n} of the plan is to tell team {n}." for n in range(40))
    + "\n",
    "docs/holidays.txt": "Every employee has thirty days of holiday.\n",
    "docs/zh/金鑰.md": "# 金鑰\n\n簽署金鑰每年輪替一次。輪替之前請先詢問資安團隊。\n",
    "docs/zh/密钥.md": "# 密钥\n\n签名密钥每年轮换一次。轮换之前请先询问安全团队。\n",
    "old/keys.md": "# Keys\n\nSigning keys never rotate.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("handbook")
    for name, text in FILES.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    with Index.open(base / ".likewise", encoder="hash") as index:
        index.sync([base])
    return base


@pytest.fixture
def retriever(folder: Path) -> Iterator[Retriever]:
    with Index.open(folder / ".likewise") as index:
        yield Retriever(index)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("how do signing keys rotate", "keys.md"),
        ("thirty days of holiday", "docs/holidays.txt"),
        ("簽署金鑰多久輪替一次", "docs/zh/金鑰.md"),
        ("签名密钥多久轮换一次", "docs/zh/密钥.md"),
    ],
)
def test_all_modes_find_it(retriever: Retriever, query: str, path: str) -> None:
    for mode in ("dense", "lexical", "hybrid"):
        assert retriever.search(query, k=3, mode=mode)[0].path.endswith(path), mode  # type: ignore[arg-type]


def test_dense_is_exact(retriever: Retriever) -> None:
    query = "revoked keys"
    with retriever.index.view() as view:
        rows = [row for document in view.documents() for row in view.document_passages(document.key)]
        vectors = view.vectors([row.id for row in rows])
    cosines = vectors @ HashEncoder().encode_queries([query])[0]
    order = np.lexsort(([row.id for row in rows], -cosines))
    found = retriever.search(query, k=4, mode="dense")
    assert [hit.passage_id for hit in found] == [rows[place].id for place in order[:4]]
    assert [hit.score for hit in found] == pytest.approx(cosines[order[:4]].tolist(), abs=1e-6)


def test_filters(retriever: Retriever) -> None:
    def paths(*expressions: str) -> set[str]:
        found = retriever.search("keys 金鑰 holiday", k=50, filter=parse_filter(expressions))
        return {hit.path for hit in found}

    assert paths("path:docs", "suffix:.md", "-path:docs/zh") == {"docs/keys.md"}
    assert paths(r"path:docs\zh\**") == {"docs/zh/金鑰.md", "docs/zh/密钥.md"}
    assert paths("lang:zh") == {"docs/zh/金鑰.md", "docs/zh/密钥.md"}
    assert paths("meta.author=ann") == {"docs/keys.md"}
    assert paths("title:金鑰") == {"docs/zh/金鑰.md"}
    assert paths("date>=2000", "state:ok") == set(FILES)
    assert paths("date<2000") == set()


def test_every_source_is_what_its_span_says(retriever: Retriever, folder: Path) -> None:
    context = pack_context(retriever.search("leaked key plan team", k=20), budget=2500)
    assert context.sources and context.tokens <= 2500
    for source in context.sources:
        text = (folder / source.path).read_text(encoding="utf-8")
        assert source.span.of(text) == source.text
        assert source.lines[0] == text.count("\n", 0, source.span.start) + 1
        assert source.lines[1] == text.count("\n", 0, source.span.end) + 1


def test_answer_and_its_citations(retriever: Retriever, folder: Path) -> None:
    result = answer(retriever, "簽署金鑰多久輪替一次？", EchoGenerator("簽署金鑰每年輪替一次[1]。"), k=3)
    (trace,) = result.citations.sentences[0].traces
    text = (folder / trace.path).read_text(encoding="utf-8")
    assert "簽署金鑰每年輪替一次。" in trace.span.of(text) and trace.support == 1.0


def test_similar(retriever: Retriever, folder: Path) -> None:
    assert retriever.similar(folder / "old" / "keys.md", k=1)[0].path == "docs/keys.md"
    by_line = retriever.similar("docs/keys.md:7", k=5)
    assert len(by_line) == 5 and by_line[0].score <= 1.0
    with pytest.raises(UsageError, match="is not in the index"):
        retriever.similar("docs/nothing.md")


def test_hostile_queries(retriever: Retriever) -> None:
    for query in ('"', "C++", "-x", "col:x", "NEAR(", "a AND", "*", "🔑", "שלום", "key\0key", "金" * 20000):
        for mode in ("dense", "lexical", "hybrid"):
            retriever.search(query, mode=mode)  # type: ignore[arg-type]


ODD = {
    "cpp.txt": "Written in C++ by hand.",
    "option.txt": "Give the option -x to see more.",
    "column.txt": "Put col:key there.",
    "near.txt": "NEAR( opens a bracket.",
    "party.txt": "Tonight a party 🎉 for all.",
    "hebrew.txt": "שלום עולם",
    "arabic.txt": "مرحبا بالعالم",
}


@pytest.mark.parametrize(
    ("query", "path"), [*zip(("C++", "-x", "col:key", "NEAR(", "🎉", "עולם", "مرحبا"), ODD, strict=True)]
)
def test_what_looks_like_an_operator_finds_its_document(odd: Retriever, query: str, path: str) -> None:
    (hit,) = odd.search(query, mode="lexical")
    assert hit.path == path
    assert path in [hit.path for hit in odd.search(query)]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    base = tmp_path_factory.mktemp("odd")
    for name, text in ODD.items():
        (base / name).write_text(text, encoding="utf-8")
    with Index.open(base / ".likewise", encoder="hash") as index:
        index.sync([base])
        yield Retriever(index)


def test_index_that_does_not_exist(tmp_path: Path) -> None:
    with Index.open(tmp_path / ".likewise") as index, pytest.raises(IndexNotFound):
        Retriever(index).search("keys", mode="lexical")


HEAVY = {"torch", "transformers", "sentence_transformers", "httpx", "tokenizers"}
ENCODERS = {"likewise.embedder.encoder", "likewise.embedder.hash_encoder"}


@pytest.mark.parametrize(("mode", "banned"), [("lexical", HEAVY | ENCODERS), ("hybrid", HEAVY)])
def test_search_imports_nothing_heavy(folder: Path, mode: str, banned: set[str]) -> None:
    code = (
        "import sys\nfrom likewise import Index, Retriever\n"
        f"assert len(Retriever(Index.open({str(folder / '.likewise')!r})).search('keys', mode={mode!r}))\n"
        f"print(*({banned!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
