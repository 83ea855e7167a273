"""The text that a model wants in front of queries and passages.

A model that says so itself is believed; a few families are known to need prompts that their files do not
mention. Nothing here reads files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.embedder.protocol import Role

_QWEN_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_BGE_EN = "Represent this sentence for searching relevant passages: "

# Exact names only (the last part of a hub id): a model that somebody trained further may have been trained
# without the prompt, and then it would hurt.
_FAMILIES: tuple[tuple[str, str, str], ...] = (
    (r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", "query: ", "passage: "),
    (
        r"(multilingual-)?e5-(large|mistral-7b)-instruct",
        f"Instruct: {_QWEN_TASK}\nQuery: ",
        "",
    ),
    (r"bge-(small|base|large)-en(-v1\.5)?", _BGE_EN, ""),
    (r"bge-(small|base|large)-zh(-v1\.5)?", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"Qwen3-Embedding-\d+(\.\d+)?B", f"Instruct: {_QWEN_TASK}\nQuery:", ""),
    (r"gte-Qwen[\d.]+-\d+(\.\d+)?B-instruct", f"Instruct: {_QWEN_TASK}\nQuery: ", ""),
    (r"nomic-embed-text-v(1|1\.5|2-moe)|modernbert-embed-base", "search_query: ", "search_document: "),
    (r"snowflake-arctic-embed-(xs|s|m|l|m-long|m-v1\.5)", _BGE_EN, ""),
    (r"snowflake-arctic-embed-[ml]-v2\.0", "query: ", ""),
    (r"mxbai-embed-(large|xsmall)-v1", _BGE_EN, ""),
    (
        r"embeddinggemma-300m",
        "task: search result | query: ",
        "title: none | text: ",
    ),
)


@dataclass(frozen=True, slots=True)
class Prompts:
    """Text put in front of each query and each passage before it is tokenized.

    Example:
        >>> Prompts(query="query: ").of("query")
        'query: '
    """

    query: str = ""
    passage: str = ""

    def of(self, role: Role) -> str:
        """The prompt of a role."""
        return self.query if role == "query" else self.passage


def find_prompts(config: Mapping[str, Any], name: str) -> Prompts:
    """The prompts of a model.

    Args:
        config: Content of `config_sentence_transformers.json`, empty for a plain checkpoint. Sentence
            Transformers writes empty prompts for every model it saves, so an empty one says nothing.
        name: Hub id or path of the model.

    Example:
        >>> find_prompts({}, "intfloat/multilingual-e5-small")
        Prompts(query='query: ', passage='passage: ')
        >>> find_prompts({"prompts": {"query": "Q: ", "document": ""}}, "intfloat/e5-small")
        Prompts(query='Q: ', passage='')
    """
    saved = {key: text for key, text in (config.get("prompts") or {}).items() if isinstance(text, str)}
    query = saved.get("query", "")
    # The names and their order are those of `SentenceTransformer.encode_document`.
    passage = next((saved[key] for key in ("document", "passage", "corpus") if saved.get(key)), "")
    if query or passage:
        return Prompts(query, passage)
    default = saved.get(config.get("default_prompt_name") or "", "")
    if default:
        return Prompts(default, default)
    last_part = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    for pattern, family_query, family_passage in _FAMILIES:
        if re.fullmatch(pattern, last_part, flags=re.IGNORECASE):
            return Prompts(family_query, family_passage)
    return Prompts()
