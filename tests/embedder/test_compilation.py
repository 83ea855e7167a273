from __future__ import annotations

import pytest
import torch

from likewise.embedder.bert import Bert, BertConfig
from likewise.embedder.compilation import compile_feed_forward
from likewise.errors import UsageError

CONFIG = BertConfig(
    vocab_size=50, hidden_size=16, layers=3, heads=2, ffn_size=32, dropout=0.0, attention_dropout=0.0
)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch's tracer about itself
def test_results_gradients_and_names_stay():
    torch.manual_seed(0)
    plain = Bert(CONFIG)
    compiled = Bert(CONFIG)
    compiled.load_state_dict(plain.state_dict())
    # "eager" traces the nets as for a GPU, but runs them as they are.
    assert compile_feed_forward(compiled, backend="eager") == 3
    assert compiled.state_dict().keys() == plain.state_dict().keys()
    for lengths in ([4], [5, 2], [7, 7, 1]):
        ids = torch.randint(0, 50, (1, sum(lengths)))
        results = []
        for model in (plain, compiled):
            model.zero_grad()
            hidden = model(ids, lengths=lengths)
            hidden.square().sum().backward()
            results.append((hidden, model.layers[0].ffn.widen.weight.grad))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other)


def test_without_a_gpu_it_is_refused():
    with pytest.raises(UsageError, match="expected a GPU with Triton to compile for, found the device cpu"):
        compile_feed_forward(Bert(CONFIG))


def test_other_models_are_refused():
    with pytest.raises(UsageError, match="only models of the BERT family"):
        compile_feed_forward(torch.nn.Linear(2, 2), backend="eager")
