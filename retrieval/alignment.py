"""Distances between one word and many others that come in order, such as a sorted vocabulary.

The restricted Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions
and exchanges of neighbours count one each (Damerau 1964, CACM 7(3)). Its table has one row for each letter of
the other word, and a row depends on the letters up to it alone: words that begin alike share these rows, and
a beginning that is too far away settles all words that have it. Nothing here knows what is a good correction.
"""

from __future__ import annotations


class Alignments:
    """Compares words with one word.

    Args:
        word: The word.
        limit: Largest distance of interest; every larger one is given as `limit + 1`.

    Example:
        >>> alignments = Alignments("signing", 2)
        >>> alignments.of("signnig")
        [3, 3, 3, 3, 3, 2, 2, 1]
        >>> alignments.is_hopeless("kangaroo")
        True
    """

    def __init__(self, word: str, limit: int) -> None:
        self.word = word
        self.limit = limit
        self._text = ""  # whose rows are in hand
        self._far = " "  # a beginning that is too far away; no word has this one
        self._rows = [[min(place, limit + 1) for place in range(len(word) + 1)]]

    def of(self, other: str) -> list[int]:
        """Distances between `other` and each beginning of the word, the empty one first.

        Costs as much as the letters that `other` does not share with the one asked for before.
        """
        return self._row(other) or [self.limit + 1] * (len(self.word) + 1)

    def is_hopeless(self, other: str) -> bool:
        """Whether every word that begins with `other` is farther away than the limit."""
        return other.startswith(self._far) or not self._row(other)

    def _row(self, other: str) -> list[int]:
        """The last row of the table, empty if from some letter on nothing is within the limit."""
        rows = self._rows
        shared = min(len(rows) - 1, len(other))
        while self._text[:shared] != other[:shared]:
            shared -= 1
        del rows[shared + 1 :]
        self._text = other
        while rows[-1] and len(rows) <= len(other):
            rows.append(self._next(other, len(rows)))
        if not rows[-1]:
            self._far = other[: len(rows) - 1]
        return rows[-1]

    def _next(self, other: str, count: int) -> list[int]:
        """The row of the first `count` letters of `other`."""
        word, most = self.word, self.limit + 1
        before, above = self._rows[-1], self._rows[-2] if count > 1 else []
        row = [most] * len(before)
        row[0] = min(count, most)
        letter, previous = other[count - 1], other[count - 2] if count > 1 else ""
        # Farther from the diagonal than the limit nothing is within it.
        for place in range(max(1, count - self.limit), min(len(word), count + self.limit) + 1):
            here = word[place - 1]
            cost = before[place - 1] + (letter != here)
            # Compared one by one: this is the innermost loop, and calling `min` takes most of its time.
            if before[place] < cost:
                cost = before[place] + 1
            if row[place - 1] < cost:
                cost = row[place - 1] + 1
            if above and previous == here and place > 1 and letter == word[place - 2]:
                cost = min(cost, above[place - 2] + 1)
            row[place] = min(cost, most)
        # An exchange reaches back over one row, nothing does over two.
        return [] if min(row) == most and min(before) == most else row
