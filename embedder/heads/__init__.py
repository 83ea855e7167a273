"""Fine-tuning: an encoder with a small head for a task, and what such a model predicts.

`finetune.finetune` is the whole way from files to a model, `predictor.Predictor` uses one. One module per
task (`classification`, `multilabel`, `regression`, `tagging`, `questions`) says what its rows, its loss and
its predictions are; the loop that trains is that of all training, `likewise.embedder.training`.
"""
