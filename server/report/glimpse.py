"""Three texts for a first look: two with usual words, and the one with the rarest."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from server.domain import Candidate

_WORD = re.compile(r"\w+")


def glimpse(texts: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return two texts of median rarity, of two labels if there are two, and the text with the rarest words.

    The rarity of a text is the mean of -log p(w) over its words, where p(w) is the proportion of the word among those
    of all texts. It needs the texts alone, so it costs no privacy.

    Args:
        texts: The texts of a run.

    Returns:
        Three texts, the rarest last; all texts if there are fewer than three.
    """
    if len(texts) < 3:
        return tuple(texts)
    words = [_WORD.findall(text.text.casefold()) for text in texts]
    counts = Counter(word for spoken in words for word in spoken)
    total = counts.total()
    cost = {word: math.log(total / count) for word, count in counts.items()}
    rarity = [math.fsum(cost[word] for word in spoken) / max(1, len(spoken)) for spoken in words]
    *usual, rarest = (texts[at] for at in sorted(range(len(texts)), key=rarity.__getitem__))
    first, *others = usual[len(usual) // 2 :] + usual[: len(usual) // 2]
    second = next((text for text in others if text.label != first.label), others[0])
    return first, second, rarest
