"""How well answers are found: exact match and F1 (Rajpurkar et al. 2016, section 6.1)."""

import collections
import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text):
    """Returns the words of an answer: small letters, no punctuation, no English article."""
    return re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_PUNCTUATION)).split()


def exact_match(found, true):
    """Returns whether two answers have the same words."""
    return normalised(found) == normalised(true)


def f1(found, true):
    """Returns the harmonic mean of how many words found are true, and of how many true are found.

    A word counts as often as it stands. Of answers without words only two of them are alike.
    """
    found, true = normalised(found), normalised(true)
    if not found or not true:
        return float(found == true)
    shared = (collections.Counter(found) & collections.Counter(true)).total()
    return 2 * shared / (len(found) + len(true))
