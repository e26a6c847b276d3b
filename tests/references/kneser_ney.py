"""Interpolated Kneser-Ney smoothing, word for word as Chen and Goodman (1999) write it."""


def probability(text, history, token, order, vocabulary_size):
    """Returns `p(token | history)`, the history's last `order - 1` tokens at most.

    Args:
        text: Sequence of ids that was counted.
        history: Tuple of ids.
        token: int.
        order: n.
        vocabulary_size: V.
    """
    history = tuple(history)[max(len(history) - order + 1, 0) :]
    return _level(tuple(text), history, token, order, vocabulary_size)


def _level(text, history, token, order, vocabulary_size):
    n = len(history) + 1
    counts = {gram: count for gram, count in _counts(text, n, order).items() if count}
    if history:
        lower = _level(text, history[1:], token, order, vocabulary_size)
    else:
        lower = 1 / vocabulary_size
    total = sum(count for gram, count in counts.items() if gram[:-1] == history)
    if not total:
        return lower
    followers = sum(gram[:-1] == history for gram in counts)
    once, twice = (sum(count == k for count in counts.values()) for k in (1, 2))
    discount = once / (once + 2 * twice) if once and twice else 0.5
    above = max(counts.get((*history, token), 0) - discount, 0)
    return above / total + discount * followers / total * lower


def _counts(text, n, order):
    grams = [text[i : i + n] for i in range(len(text) - n + 1)]
    if n == order:
        return {gram: grams.count(gram) for gram in grams}
    longer = {text[i : i + n + 1] for i in range(len(text) - n)}
    return {gram: sum(other[1:] == gram for other in longer) for gram in grams}
