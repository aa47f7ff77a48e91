"""Word sequences: the tokens of texts, and a weighted back-off n-gram model of a few sentences at a time.

A token includes the white space before it, so joining tokens restores the text, layout included. The model stores each
occurrence of a context together with its sentence. Weights per sentence and per token are supplied only when a word is
drawn, so one set of tables serves several texts that favour different sentences.
"""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

Sentence = tuple[str, ...]
_Seen = tuple[str, int, float, str, str]  # token, number of its sentence, factor on its weight, tokens 2 and 3 before

_TOKEN = re.compile(r"\s*(?:[^\W_]+(?:['’.,/-][^\W_]+)*|[^\w\s]|_+)")
_WORD = re.compile(r"[^\W_]+")
_STOPS = frozenset(".?!")
_BEGIN, _END = "\x02", "\x03"
_LONGEST = 60  # tokens of one sentence; a walk that has gone round in circles is cut here


def tokenise(text: str) -> Sentence:
    """Split a text into tokens, each with the white space before it; the first token begins with a blank."""
    return tuple(_TOKEN.findall(" " + text.strip()))


def untokenise(tokens: Sequence[str]) -> str:
    """Join tokens into a text."""
    return "".join(tokens).strip()


@lru_cache(maxsize=1 << 16)
def bare(token: str) -> str:
    """Return a token in lower case and without white space, to compare words."""
    return token.strip().casefold()


def normal_words(text: str) -> str:
    """Return a text's normal form, by which copies are recognised: its words, without case and punctuation."""
    return " ".join(_WORD.findall(text.casefold()))


@lru_cache(maxsize=1 << 14)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Split a text into sentences; a new line also begins a sentence. Cached, since models read the same texts.

    A single letter with a full stop is an abbreviation and does not end a sentence: "Z. n. Appendektomie".
    """
    runs: list[list[str]] = [[]]
    before = previous = ""
    for token in tokenise(text):
        word = token.lstrip()
        ended = previous in _STOPS and not (previous == "." and len(before) == 1 and before.isalpha())
        starts = "\n" in token or (ended and token != word and not word[0].islower())
        if starts and runs[-1]:
            runs.append([])
        runs[-1].append(token)
        before, previous = previous, word
    return tuple(tuple(tokens) for tokens in runs if tokens)


class Between:
    """Counts of the tokens that a model has read between each pair of tokens, and after and before each token."""

    def __init__(self, texts: Sequence[Sentence]) -> None:
        self.inside: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.after: defaultdict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.before: defaultdict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for tokens in texts:
            path = (_BEGIN, *tokens, _END)
            for left, middle in pairwise(path):
                self.after[left][middle] += 1
                self.before[middle][left] += 1
            for left, middle, right in zip(path, path[1:], path[2:], strict=False):
                self.inside[left, right][middle] += 1

    def unheard(self, tokens: Sentence) -> int:
        """Return the number of sequences of three tokens in a sentence that the model has never read."""
        path = (_BEGIN, *tokens, _END)
        inside = self.inside
        return sum(
            middle not in inside.get((left, right), ())
            for left, middle, right in zip(path, path[1:], path[2:], strict=False)
        )

    def refill(
        self, tokens: Sentence, holes: Sequence[int], boost: Mapping[str, float], rng: random.Random, *, strict: bool
    ) -> Sentence:
        """Fill each hole with another token that fits its neighbours, if such a token exists.

        If no other token was ever read between the two neighbours, use one that was read both after the left neighbour
        and before the right one. If there is no such token either, and `strict` is false, use one that was read on the
        correct side of at least one neighbour.
        """
        path = [_BEGIN, *tokens, _END]
        for hole in holes:
            left, old, right = path[hole], path[hole + 1], path[hole + 2]
            choice = self.inside.get((left, right), {})
            if not choice.keys() - {old}:
                follow, precede = self.after.get(left, {}), self.before.get(right, {})
                choice = {token: follow[token] * precede[token] for token in follow.keys() & precede.keys()}
                if not strict and not choice.keys() - {old}:
                    choice = follow | precede
            options = sorted(token for token in choice if token not in (old, _BEGIN, _END))
            if options:
                weights = [choice[token] * boost.get(bare(token), 1.0) for token in options]
                path[hole + 1] = rng.choices(options, weights)[0]
        return tuple(path[1:-1])

    def cross(self, first: Sentence, second: Sentence, rng: random.Random) -> Sentence:
        """Return a beginning of the first sentence joined to an ending of the second.

        The best seam is between tokens that were often read in succession, at similar positions in both sentences.
        """
        best, seam = (-1.0, 0.0), (len(first), 0)
        for left in range(max(1, len(first) // 4), max(2, 3 * len(first) // 4 + 1)):
            for right in range(max(0, len(second) // 4), max(1, 3 * len(second) // 4 + 1)):
                apart = abs(left / len(first) - right / len(second))
                times = self.after.get(first[left - 1], {}).get(second[right], 0)
                quality = (min(times, 3) - 2 * apart, rng.random())
                if quality > best:
                    best, seam = quality, (left, right)
        return first[: seam[0]] + second[seam[1] :]


class Walk:
    """An n-gram model of a pool of sentences.

    Args:
        pool: The sentences.
        boost: Factor for a token's weight, keyed by the token's bare form; 1 if absent.
        backward: Whether to model the sentences backwards, from their ends to their beginnings.
    """

    def __init__(self, pool: Sequence[Sentence], boost: Mapping[str, float], *, backward: bool = False) -> None:
        self._pool = [sentence[::-1] for sentence in pool] if backward else list(pool)
        by_word: defaultdict[str, list[_Seen]] = defaultdict(list)
        factors: dict[str, float] = {_END: 1.0}
        for number, sentence in enumerate(self._pool):
            a, b, c = _BEGIN, _BEGIN, _BEGIN
            for token in (*sentence, _END):
                factor = factors.get(token)
                if factor is None:
                    factor = factors[token] = boost.get(bare(token), 1.0)
                by_word[c].append((token, number, factor, b, a))
                a, b, c = b, c, token
        self._one = dict(by_word)
        self._two: dict[tuple[str, str], list[_Seen]] = {}

    def write(self, begin: Sequence[str], weights: Sequence[float], looseness: float, rng: random.Random) -> Sentence:
        """Continue `begin` to the end of a sentence.

        Args:
            begin: Tokens already written, in the direction of writing; empty at the start of a sentence.
            weights: A positive weight for each sentence of the pool.
            looseness: Fraction of steps with a context of only one token; most other steps use two tokens, and the rest
                use three.
            rng: The text's own random generator.

        Returns:
            The sentence, including `begin`.
        """
        tokens = list(begin)
        a, b, c = (_BEGIN, _BEGIN, _BEGIN, *tokens)[-3:]
        while len(tokens) < _LONGEST:
            draw = rng.random()
            seen = self._after(b, c) if draw > looseness else []
            if not seen:
                seen = self._one.get(c, [])
            elif draw > (1 + looseness) / 2:
                seen = [occurrence for occurrence in seen if occurrence[4] == a] or seen
            if not seen:
                break
            token = _draw(seen, weights, rng)
            if token == _END:
                break
            tokens.append(token)
            a, b, c = b, c, token
        return tuple(tokens)

    def _after(self, b: str, c: str) -> list[_Seen]:
        """Return the tokens that follow these two in the pool, collected at first use, since few pairs are needed."""
        seen = self._two.get((b, c))
        if seen is None:
            seen = [occurrence for occurrence in self._one.get(c, ()) if occurrence[3] == b]
            self._two[b, c] = seen
        return seen


def _draw(seen: list[_Seen], weights: Sequence[float], rng: random.Random) -> str:
    if len(seen) == 1:
        return seen[0][0]
    masses = [weights[number] * factor for _, number, factor, _, _ in seen]
    return rng.choices(seen, masses)[0][0]
