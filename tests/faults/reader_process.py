"""Read an index over and over until standard input ends; run as a script by the tests.

The writer keeps this true at every commit: the documents `left` and `right` each have one passage, `left N`
and `right N` with the same N, and there are N filler documents besides. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.view import IndexReader


def look(reader: IndexReader, query) -> int:
    """The version that one view shows, after checking that everything in it is of that version."""
    with reader.view() as view:
        (left,) = view.document_passages("left")
        (right,) = view.document_passages("right")
        version = int(left.passage.text.split()[1])
        assert right.passage.text == f"right {version}"
        total = version + 2
        assert view.passage_count == total
        ranking = view.dense(query, total + 5)
        assert len(ranking.ids) == total, (len(ranking.ids), total)
        passages = view.passages(ranking.ids)
        assert len(passages) == total
        assert {left.id, right.id} <= passages.keys()
        assert view.lexical(["left"], 5).ids.tolist() == [left.id]
        assert view.lexical([str(version), "left"], 1).ids.tolist() == [left.id]
        assert not view.notices, view.notices
        return version


def main() -> None:
    folder = Path(sys.argv[1])
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    query = HashEncoder().encode_queries(["left right filler"])[0]
    versions = []
    with IndexReader(folder) as reader:
        print("ready", flush=True)
        while not stop.is_set():
            versions.append(look(reader, query))
        versions.append(look(reader, query))
    assert versions == sorted(versions), "an older state came after a newer one"
    print(json.dumps({"views": len(versions), "versions": len(set(versions)), "last": versions[-1]}))


if __name__ == "__main__":
    main()
