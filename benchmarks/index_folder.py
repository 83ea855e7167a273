"""Passages per second from files to a published index, against the raw encoder and against LlamaIndex.

Three measures over the English documentation of FastAPI:
- `likewise index`, the whole process;
- the same encoder over exactly the passages that the index holds: the most that indexing could reach;
- a LlamaIndex pipeline with the same weights and FAISS, at its defaults but for the chunk size, which has to
  fit the model's 256 tokens. Its passages differ from ours, so the comparison is by the time for the folder.

With `--memory` it shows the peak memory at one and at four times the folder.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from _folders import documentation
from _measure import run, table

from likewise import Encoder, Index
from likewise.embedder.resolve import BASE_ENCODER, resolve
from likewise.index.records import passage_context

PEER = """\
import sys
import faiss
from llama_index.core import Settings, SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.vector_stores.faiss import FaissVectorStore

folder, model, target = sys.argv[1:]
embedding = HuggingFaceEmbedding(model_name=model, device="cpu")
documents = SimpleDirectoryReader(folder, recursive=True, exclude_hidden=False).load_data()
tokenizer = embedding._model.tokenizer
splitter = SentenceSplitter(chunk_size=200, chunk_overlap=0, tokenizer=lambda text: tokenizer.tokenize(text))
store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(384))
index = VectorStoreIndex.from_documents(
    documents,
    storage_context=StorageContext.from_defaults(vector_store=store),
    embed_model=embedding,
    transformations=[splitter],
)
index.storage_context.persist(target)
print(store._faiss_index.ntotal)
"""


def likewise_index(folder: Path) -> list[str]:
    shutil.rmtree(folder / ".likewise", ignore_errors=True)
    return [str(Path(sys.executable).parent / "likewise"), "index", str(folder)]


def raw_rate(folder: Path, encoder: Encoder) -> tuple[int, float]:
    """Number of passages of the index, and how many of them the encoder alone embeds in a second."""
    with Index.open(folder / ".likewise") as index, index.view() as view:
        rows = [row for document in view.documents() for row in view.document_passages(document.key)]
    texts = [
        f"{passage_context(row.title, row.passage.headings)}\n{row.passage.text}".strip() for row in rows
    ]
    encoder.encode_passages(texts[:32])
    start = time.perf_counter()
    encoder.encode_passages(texts)
    return len(texts), len(texts) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has LlamaIndex")
    parser.add_argument("--memory", action="store_true", help="also index four copies and show the peaks")
    args = parser.parse_args()

    folder = documentation(1)
    characters = sum(len(path.read_text(encoding="utf-8")) for path in folder.rglob("*.md"))
    encoder = Encoder.load()
    mine = run(likewise_index(folder))
    passages, raw = raw_rate(folder, encoder)
    again = run(likewise_index(folder))
    mine = min(mine, again, key=lambda result: result.seconds)
    with tempfile.TemporaryDirectory() as target:
        shutil.rmtree(folder / ".likewise")
        peer = run([args.peer_python, "-c", PEER, str(folder), str(resolve(BASE_ENCODER).directory), target])
    rate = passages / mine.seconds
    table(
        f"{characters:,} characters of Markdown",
        ["", "seconds", "passages", "passages/s", "characters/s", "peak MB"],
        [
            [
                "likewise index, whole process",
                mine.seconds,
                passages,
                rate,
                characters / mine.seconds,
                mine.peak_mb,
            ],
            ["raw encoder on the same passages", passages / raw, passages, raw, "", ""],
            [
                "LlamaIndex + FAISS, whole process",
                peer.seconds,
                int(peer.stdout.split()[-1]),
                int(peer.stdout.split()[-1]) / peer.seconds,
                characters / peer.seconds,
                peer.peak_mb,
            ],
        ],
    )
    print(f"share of the raw encoder's rate: {rate / raw:.2f}")
    print(f"times as fast as LlamaIndex: {peer.seconds / mine.seconds:.2f}")
    if args.memory:
        rows = [["1x", passages, mine.seconds, mine.peak_mb]]
        large = documentation(4)
        result = run(likewise_index(large))
        with Index.open(large / ".likewise") as index, index.view() as view:
            rows.append(["4x", view.passage_count, result.seconds, result.peak_mb])
        table("memory as the folder grows", ["", "passages", "seconds", "peak MB"], rows)


if __name__ == "__main__":
    main()
