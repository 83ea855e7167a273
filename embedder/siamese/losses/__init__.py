"""Losses of siamese training, one a file: pure functions of embeddings, with no model inside.

A loss over independent examples returns one value for each, so that sums over micro-batches are exact
whatever their size. One that compares the examples of a batch with each other returns a single value, or
values that depend on the batch; it cannot be accumulated, and `tasks.py` refuses to.

Vectors are float of shape (n, d) with one row per example; they need not have unit length. What is computed
equals the loss of the same name in sentence-transformers, in value and in gradient, where there is one.
"""
