"""From question to checked answer, with generators that say what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from likewise.errors import GeneratorError, QueryError
from likewise.index.records import Filter
from likewise.retrieval.answer import answer, stream_answer
from likewise.retrieval.generators.base import Message, TextStream
from likewise.retrieval.generators.echo import EchoGenerator
from likewise.retrieval.search import Retriever
from likewise.retrieval.tokens import TokenizerCounter

MakeIndex = Callable[..., Any]
QUESTION = "How often do signing keys rotate?"


class Recorder(EchoGenerator):
    """Echoes, and keeps what it was asked."""

    def __init__(self, reply: str | None = None) -> None:
        super().__init__(reply)
        self.asked: list[list[Message]] = []

    def stream(self, messages: Sequence[Message]) -> TextStream:
        self.asked.append(list(messages))
        return super().stream(messages)


def test_answer_is_generated_from_the_sources_and_checked(make_index: MakeIndex) -> None:
    generator = Recorder("Signing keys rotate every year [1]. They are green [9]. Nobody knows why.")
    result = answer(Retriever(make_index()), QUESTION, generator)
    ((system, user),) = generator.asked
    assert system["content"] == result.context.instructions
    assert user["content"] == f"{result.context.body}\n\nQuestion: {QUESTION}"
    assert "Signing keys rotate every year." in user["content"]
    assert result.generator == "echo" and result.finish_reason == "stop"
    assert result.citations.cited == (1,) and result.citations.unknown == (9,)
    (trace,) = result.citations.sentences[0].traces
    assert (trace.path, trace.support) == (result.context.sources[0].path, 1.0)
    sources = len(result.context.sources)
    assert result.notices == (
        f"the answer cites [9], but the sources end at [{sources}]",
        "1 of 3 sentences cite no source",
    )


def test_answer_in_chinese(make_index: MakeIndex) -> None:
    generator = Recorder("簽署金鑰每年輪替一次【1】。")
    result = answer(Retriever(make_index()), "簽署金鑰多久輪替一次？", generator)
    assert generator.asked[0][1]["content"].endswith("問題：簽署金鑰多久輪替一次？")
    (trace,) = result.citations.sentences[0].traces
    assert (trace.path, trace.text, trace.support) == ("docs/zh/金鑰.md", "簽署金鑰每年輪替一次。", 1.0)
    assert result.notices == ()


def test_stream_gives_pieces_then_the_whole(make_index: MakeIndex) -> None:
    stream = stream_answer(Retriever(make_index()), QUESTION, EchoGenerator("Every year [1]."))
    assert stream.context.sources and stream.hits.query == QUESTION
    assert next(stream) == "Every "
    result = stream.result()  # takes the rest
    assert result.text == "Every year [1]." and result.citations.cited == (1,)
    assert list(stream) == [] and stream.result() == result


def test_stream_that_is_closed_early_is_still_checked(make_index: MakeIndex) -> None:
    stream = stream_answer(Retriever(make_index()), QUESTION, EchoGenerator("Every year [1]. And so on."))
    assert [next(stream) for _ in range(3)] == ["Every ", "year ", "[1]. "]
    stream.close()
    result = stream.result()
    assert result.text == "Every year [1]. " and result.citations.cited == (1,)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (QUESTION, "No passage of the index answers this question."),
        ("如何輪替金鑰？", "索引中沒有能回答這個問題的段落。"),
        ("如何轮换密钥？", "索引中没有能回答这个问题的段落。"),
    ],
)
def test_nothing_found_calls_no_generator(make_index: MakeIndex, question: str, text: str) -> None:
    generator = Recorder("never")
    nowhere = Filter(paths=("nowhere",))
    result = answer(Retriever(make_index()), question, generator, filter=nowhere)
    assert (result.text, result.generator, result.finish_reason) == (text, "", None)
    assert generator.asked == [] and result.context.sources == ()
    assert result.notices == ("the filter matches no passage",)
    assert result.citations.sentences == ()


def test_empty_answer_and_cut_answer_are_noticed(make_index: MakeIndex) -> None:
    class Cut(EchoGenerator):
        def stream(self, messages: Sequence[Message]) -> TextStream:
            def pieces() -> Any:
                yield "Every year [1]"
                return "length"

            return TextStream(pieces())

    retriever = Retriever(make_index())
    assert answer(retriever, QUESTION, EchoGenerator(" ")).notices == ("the generator answered with nothing",)
    assert answer(retriever, QUESTION, Cut()).notices == (
        "the answer is cut: the generator reached its limit of tokens",
    )


def test_plain_iterators_will_do(make_index: MakeIndex) -> None:
    class Plain:
        name = "plain"
        token_counter = TokenizerCounter("characters", len)

        def stream(self, messages: Sequence[Message]) -> Iterator[str]:
            return iter(["Every ", "year [1]."])

    result = answer(Retriever(make_index()), QUESTION, Plain(), budget=1500)
    assert result.text == "Every year [1]." and result.finish_reason is None
    # The budget was counted with the generator's own tokenizer.
    assert result.context.tokenizer == "characters"
    assert result.context.tokens == len(result.context.text) <= 1500
    given = answer(
        Retriever(make_index()), QUESTION, Plain(), tokenizer=TokenizerCounter("half", lambda t: len(t) // 2)
    )
    assert given.context.tokenizer == "half"


def test_failures_pass_through(make_index: MakeIndex) -> None:
    class Broken(EchoGenerator):
        def stream(self, messages: Sequence[Message]) -> TextStream:
            def pieces() -> Any:
                yield "Every "
                raise GeneratorError("the connection broke")

            return TextStream(pieces())

    stream = stream_answer(Retriever(make_index()), QUESTION, Broken())
    assert next(stream) == "Every "
    with pytest.raises(GeneratorError, match="the connection broke"):
        stream.result()
    with pytest.raises(QueryError):
        answer(Retriever(make_index()), " ", Broken())


def test_json_shape(make_index: MakeIndex) -> None:
    result = answer(Retriever(make_index()), QUESTION, EchoGenerator("Every year [1]."))
    value = json.loads(json.dumps(result.to_json()))
    assert list(value) == [
        "version", "question", "answer", "generator", "finish_reason", "citations", "sources", "notices",
    ]  # fmt: skip
    assert (value["version"], value["answer"], value["question"]) == (1, "Every year [1].", QUESTION)
    assert value["sources"][0]["number"] == 1 and value["citations"]["cited"] == [1]


def test_echo_repeats_the_question_or_refuses() -> None:
    asked: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "金鑰 ?\n"}]
    assert "".join(EchoGenerator().stream(asked)) == "金鑰 ?\n"
    with pytest.raises(GeneratorError, match="to repeat, found none"):
        EchoGenerator().stream(asked[:1])
