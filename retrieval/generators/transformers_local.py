"""A Hugging Face model in this process: causal (Llama, Qwen, GPT-2) or encoder-decoder (T5, BART).

Local files come first: the hub is asked only for a model that is not there, and never where `HF_HUB_OFFLINE`
is set. Code that comes with a model is never run. torch and transformers are imported when a model is loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from likewise.errors import GeneratorError, UsageError
from likewise.retrieval.fencing import neutralise
from likewise.retrieval.generators.base import FinishReason, Message, TextStream
from likewise.retrieval.generators.thoughts import without_thoughts
from likewise.retrieval.tokens import HUB_ID, TokenizerCounter, counter_of

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class TransformersGenerator:
    """Generates with a model of the transformers library, greedily, so that equal prompts get equal answers.

    Tokenizer and configuration are read at once, weights when the first text is asked for.

    Args:
        name_or_path: A model folder or a hub id.
        max_new_tokens: Most tokens of an answer, at least 1.
        device: Such as `cpu`, `cuda` or `mps`; None takes the fastest there is.

    Raises:
        GeneratorError: No model there, one that needs code of its own, or no tokenizer.
        UsageError: An argument makes no sense.
    """

    def __init__(
        self, name_or_path: str | os.PathLike[str], *, max_new_tokens: int = 512, device: str | None = None
    ) -> None:
        if max_new_tokens < 1:
            raise UsageError(f"expected max_new_tokens of at least 1, found {max_new_tokens}")
        from transformers import AutoConfig, AutoTokenizer

        self._name = os.fspath(name_or_path)
        self._max_new_tokens = max_new_tokens
        self._device = device
        self._config: Any = self._load(AutoConfig.from_pretrained)
        self._tokenizer: Any = self._load(AutoTokenizer.from_pretrained)
        self._special = sorted(
            {
                *self._tokenizer.all_special_tokens,
                *(str(t) for t in self._tokenizer.added_tokens_decoder.values() if t.special),
            }
        )

    @property
    def name(self) -> str:
        """Folder or hub id."""
        return self._name

    @cached_property
    def token_counter(self) -> TokenizerCounter:
        """Counts with the model's own tokenizer."""
        return counter_of(self._tokenizer, self._name)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the prompt is encoded apart from the answer."""
        return bool(self._config.is_encoder_decoder)

    def stream(self, messages: Sequence[Message]) -> TextStream:
        """The answer as it is generated.

        The messages go through the model's chat template. A model without one gets them as plain text, one
        below the other. Special tokens inside a message are broken up, so that no document can end its turn.
        What a reasoning model thinks before it answers is left out.

        Raises:
            GeneratorError: While reading: the prompt is longer than the model takes, or generating fails.
        """
        return TextStream(self._answer(list(messages)))

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids that the model is given for a conversation."""
        safe: list[Message] = [
            {"role": message["role"], "content": neutralise(message["content"], self._special)}
            for message in messages
        ]
        if not self._tokenizer.chat_template:
            text = "\n\n".join(message["content"] for message in safe) + "\n"
            return list(self._tokenizer(text, truncation=False, verbose=False)["input_ids"])
        from jinja2.exceptions import TemplateError

        try:
            return self._templated(safe)
        except TemplateError:
            # Some templates (Gemma, early Mistral) know no system role: its rules open the first question.
            system = [message["content"] for message in safe if message["role"] == "system"]
            others = [message for message in safe if message["role"] != "system"]
            if not (system and others):
                raise GeneratorError(f"the chat template of {self._name} refuses this conversation") from None
            opening: Message = {
                "role": others[0]["role"],
                "content": "\n\n".join([*system, others[0]["content"]]),
            }
            return self._templated([opening, *others[1:]])

    def _templated(self, messages: list[Message]) -> list[int]:
        encoded = self._tokenizer.apply_chat_template(
            messages,
            add_generation_prompt=True,
            return_dict=True,
            # Known to the templates of models that think aloud; others ignore it.
            enable_thinking=False,
        )
        return list(encoded["input_ids"])

    def _answer(self, messages: list[Message]) -> Generator[str, None, FinishReason]:
        ids = self.prompt_ids(messages)
        # Some templates open the thought themselves, so that only its end shows in what is generated.
        thinking = self._tokenizer.decode(ids[-8:]).rstrip().endswith("<think>")
        return (yield from without_thoughts(self._pieces(ids), thinking=thinking))

    def _pieces(self, ids: list[int]) -> Generator[str, None, FinishReason]:
        import torch
        from transformers import StoppingCriteriaList, TextIteratorStreamer

        room = self._room(len(ids))
        model = self._model
        streamer = TextIteratorStreamer(self._tokenizer, skip_prompt=True, skip_special_tokens=True)
        cancelled = Event()
        outputs: list[list[int]] = []
        failures: list[Exception] = []

        def stopped(input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            return torch.full((input_ids.shape[0],), cancelled.is_set(), device=input_ids.device)

        def generate() -> None:
            try:
                prompt = torch.tensor([ids], device=model.device)
                with torch.inference_mode():
                    outputs.extend(
                        model.generate(
                            input_ids=prompt,
                            attention_mask=torch.ones_like(prompt),
                            max_new_tokens=room,
                            do_sample=False,
                            temperature=None,
                            top_p=None,
                            top_k=None,
                            pad_token_id=self._pad_id(),
                            streamer=streamer,
                            stopping_criteria=StoppingCriteriaList([stopped]),
                        ).tolist()
                    )
            except (
                Exception
            ) as error:  # handed to the reader below: an exception must not die with its thread
                failures.append(error)
                streamer.end()

        thread = Thread(target=generate, name="likewise-generate", daemon=True)
        thread.start()
        try:
            for piece in streamer:
                if piece:
                    yield piece
        finally:
            # Reached early if the reader goes away: the model then stops at the next token.
            cancelled.set()
            thread.join()
        if failures:
            raise GeneratorError(
                f"{self._name} failed while generating: {failures[0]}",
                remedy="lower --budget, or use a smaller model or another device",
            ) from failures[0]
        return "stop" if outputs[0][-1] in self._end_ids() else "length"

    def _room(self, prompt: int) -> int:
        """Tokens that an answer may have."""
        window = getattr(self._config.get_text_config(decoder=False), "max_position_embeddings", None)
        if not isinstance(window, int):
            return self._max_new_tokens  # relative positions: no limit but memory
        taken = 0 if self.is_encoder_decoder else prompt
        if prompt > window or taken >= window:
            raise GeneratorError(
                f"the prompt has {prompt} tokens, {self._name} takes {window}",
                remedy=f"lower --budget by {prompt - window + min(256, window // 4)} tokens or more",
            )
        return min(self._max_new_tokens, window - taken)

    @cached_property
    def _model(self) -> Any:
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        kind = AutoModelForSeq2SeqLM if self.is_encoder_decoder else AutoModelForCausalLM
        model: Any = self._load(kind.from_pretrained, dtype="auto")
        device = self._device or _best_device()
        try:
            model = model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise GeneratorError(f"cannot use device {device}: {error}", remedy="--device cpu") from error
        if torch.device(device).type == "cpu" and model.dtype == torch.float16:
            model = model.float()  # half precision is slow or missing on CPUs
        return model.eval()

    def _load(self, load: Callable[..., T], **options: object) -> T:
        """Load something of the model: from local files, else from the hub."""
        from huggingface_hub.constants import HF_HUB_OFFLINE

        folder = Path(self._name).expanduser()
        is_folder = bool(self._name) and folder.is_dir()  # an empty path would be the working directory
        if not is_folder and not HUB_ID.fullmatch(self._name):
            raise GeneratorError(
                f"no model folder at {self._name}",
                remedy="give a folder with config.json, or a hub id such as Qwen/Qwen3-0.6B",
            )
        name = str(folder) if is_folder else self._name
        try:
            with _bars_on_terminals_only():
                try:
                    return load(name, local_files_only=True, trust_remote_code=False, **options)
                except OSError:
                    if is_folder or HF_HUB_OFFLINE:
                        raise
                    return load(name, trust_remote_code=False, **options)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise GeneratorError(
                f"cannot load a text generator from {self._name}: {error}",
                remedy="give a folder or hub id of a causal or encoder-decoder model without code of its own",
            ) from error

    def _end_ids(self) -> set[int]:
        end = self._model.generation_config.eos_token_id
        return set(end) if isinstance(end, list) else {end} - {None}

    def _pad_id(self) -> int | None:
        pad: int | None = self._tokenizer.pad_token_id
        return pad if pad is not None else next(iter(sorted(self._end_ids())), None)


@contextmanager
def _bars_on_terminals_only() -> Iterator[None]:
    """Keep the library's progress bars out of log files and pipes."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
