"""From pressing return to hits: a whole `likewise search` process against a short script that does the same.

The script is what people write first: sentence-transformers for the query vector, FAISS for the neighbours, a
JSON file for the texts. Both answer the same query from the same 10,000 abstracts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from _folders import abstracts_index
from _measure import run, table

from likewise import Index
from likewise.embedder.resolve import BASE_ENCODER, resolve

SCRIPT = """\
import json, sys
import faiss
from sentence_transformers import SentenceTransformer

folder, model_path, query = sys.argv[1:]
model = SentenceTransformer(model_path, device="cpu")
index = faiss.read_index(folder + "/vectors.faiss")
with open(folder + "/texts.json", encoding="utf-8") as file:
    texts = json.load(file)
vector = model.encode([query], normalize_embeddings=True)
scores, rows = index.search(vector, 10)
for score, row in zip(scores[0], rows[0]):
    print(f"{score:.3f}", texts[row][:200])
"""
IMPORTS = """\
import sys
from likewise.cli.main import main
sys.argv[:] = ["likewise", "search", "--index", sys.argv[1], sys.argv[2]]
try:
    main()
finally:
    heavy = {"torch", "transformers", "sentence_transformers"} & set(sys.modules)
    print("heavy modules:", sorted(heavy), file=sys.stderr)
    if heavy:
        sys.exit(9)
"""
QUERY = "effect of a shock wave on the boundary layer"


def export(index_folder: Path, target: Path) -> int:
    """Write what the script needs: the same vectors and texts."""
    import faiss

    with Index.open(index_folder) as index, index.view() as view:
        rows = [passage for document in view.documents() for passage in view.document_passages(document.key)]
        vectors = view.vectors([row.id for row in rows])
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    faiss.write_index(flat, str(target / "vectors.faiss"))
    (target / "texts.json").write_text(json.dumps([row.passage.text for row in rows]), encoding="utf-8")
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--documents", type=int, default=7500, help="abstracts; about 4 passages to 3 of them"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mode", default="hybrid", choices=["hybrid", "dense", "lexical"])
    args = parser.parse_args()

    index_folder = abstracts_index(args.documents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passages = export(index_folder, folder)
        (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
        mine = [str(Path(sys.executable).parent / "likewise"), "search", "--mode", args.mode]
        mine += ["--index", str(index_folder), QUERY]
        theirs = [
            sys.executable,
            str(folder / "script.py"),
            str(folder),
            str(resolve(BASE_ENCODER).directory),
            QUERY,
        ]
        run([sys.executable, "-c", IMPORTS, str(index_folder), QUERY])  # fails where a heavy module is loaded
        run(mine)
        run(theirs)
        runs = [(run(mine), run(theirs)) for _ in range(args.rounds)]
    seconds = [statistics.median(r[i].seconds for r in runs) for i in range(2)]
    memory = [max(r[i].peak_mb for r in runs) for i in range(2)]
    table(
        f"whole process, {passages:,} passages, {args.mode}, median of {args.rounds}",
        ["", "seconds", "times faster", "peak MB", "share of memory"],
        [
            ["likewise search", seconds[0], seconds[1] / seconds[0], memory[0], memory[0] / memory[1]],
            ["sentence-transformers + FAISS", seconds[1], 1.0, memory[1], 1.0],
        ],
    )


if __name__ == "__main__":
    main()
