"""Siamese training after Sentence-BERT: two or more texts through one encoder, compared by cosine.

Reimers and Gurevych 2019, "Sentence-BERT", 1908.10084. `train.py` connects the parts; `losses/` has one loss
a file; the loop is that of `likewise.embedder.training`.
"""
