"""Words for people: messages about parties, lists as a sentence has them, percentages, and a capital at the beginning.

The protocol identifies parties by number, and people identify them by the name of the hospital.

A message remains a sequence of pieces until it is shown. Then the coordinator's log, its final error line and a
hospital's log replace numbers by names, each from its own roster, without searching any text for numbers.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence


def quote_name(name: str) -> str:
    """Return a name in double quotes, with those inside it escaped: where it ends can be seen."""
    return json.dumps(name, ensure_ascii=False)


class Words:
    """A phrase that may name parties; it becomes text once its reader is known."""

    __slots__ = ()

    def text(self, names: Sequence[str] = ()) -> str:
        """Render the phrase as text.

        `names` are the hospitals', indexed by party number; a party without a name is shown as "party 0" and so on.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()


class NumberedParty(Words, int):
    """A party, identified by its number in the roster."""

    __slots__ = ()

    def text(self, names: Sequence[str] = ()) -> str:
        """Return the party's name, or "party" and its number."""
        return names[self] if self < len(names) else f"party {int(self)}"


class Phrase(Words):
    """Consecutive pieces, with nothing between them; a piece may be `Words`."""

    __slots__ = ("_pieces",)

    def __init__(self, *pieces: object) -> None:
        self._pieces = pieces

    def text(self, names: Sequence[str] = ()) -> str:
        """Return the text of all pieces, joined."""
        return "".join(render_phrase(piece, names) for piece in self._pieces)


class Turnout(Words):
    """The number of parties that take part, and what each absent party did.

    Attributes:
        present: The number of parties that take part.
        absent: For each absent party, a clause that follows its name.
    """

    __slots__ = ("absent", "present")

    def __init__(self, present: int, absent: Mapping[int, object]) -> None:
        self.present, self.absent = present, dict(sorted(absent.items()))

    def text(self, names: Sequence[str] = ()) -> str:
        """Return the number and, in brackets, the absent parties."""
        clauses = [Phrase(NumberedParty(party), " ", words) for party, words in self.absent.items()]
        return Phrase(self.present, *([" (", join_phrases(clauses, "; "), ")"] if clauses else [])).text(names)


def render_phrase(value: object, names: Sequence[str] = ()) -> str:
    """Render any part of a message as text."""
    return value.text(names) if isinstance(value, Words) else str(value)


def join_phrases(pieces: Iterable[object], between: str) -> Phrase:
    """Return the pieces as one phrase, with `between` as the separator."""
    return Phrase(*[part for piece in pieces for part in (between, piece)][1:])


def series(words: Sequence[str], last: str) -> str:
    """Join words with commas and, before the last one, the conjunction `last`: "a, b or c"; empty if there are none."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def capital(words: str) -> str:
    """Return the words with a capital first letter and all other letters unchanged, as in "ECG report"."""
    return words[:1].upper() + words[1:]


def list_parties(parties: Collection[int], between: str = ", ") -> Phrase:
    """Return a phrase that lists the parties in ascending order; "none" if there are none."""
    return join_phrases(map(NumberedParty, sorted(parties)) if parties else ["none"], between)


def percent(share: float, decimals: int = 1) -> str:
    """Return a fraction as a percentage in English, such as "83.5%"; other languages put a space before the sign."""
    return f"{share:z.{decimals}%}"


def shorten_exponent(number: str) -> str:
    """Return a number as text with an exponent of no more digits than it needs, such as 1e-5 for 1e-05."""
    mantissa, _, exponent = number.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def group_by_four(digest: str) -> str:
    """Return hexadecimal digits in groups of four, to be read aloud."""
    return " ".join(digest[place : place + 4] for place in range(0, len(digest), 4))
