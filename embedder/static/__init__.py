"""Static encoders: one vector for each token, distilled from a teacher; a text is the mean of its tokens.

After model2vec (Tulkens and van Dongen 2024) and SIF (Arora, Liang and Ma 2017, "A Simple but Tough-to-Beat
Baseline for Sentence Embeddings"). `distil.py` connects the parts; `runtimes/static.py` runs the result.
"""
