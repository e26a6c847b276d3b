"""Beam search by running the whole model anew for each step, and search through everything."""

import itertools
import math


def length_penalty(tokens, alpha):
    """Source: Wu et al. 2016, equation 14."""
    return ((5 + tokens) / 6) ** alpha


def beam_search(
    following,
    row,
    new,
    width,
    stop_ids=(),
    alpha=0.0,
    early_stopping=False,
    groups=1,
    diversity=0.0,
    bonus=lambda tokens: 0.0,
):
    """Returns the finished hypotheses `(tokens, total, score)` of a row, best first.

    Args:
        following: Function from a list of token lists, of one length, to the log-probabilities of
            the token after each, `[rows, V]`.
        row: List of token ids.
        new: Most tokens of a hypothesis.
        width: Beams, all groups together.
        stop_ids: Ids that end a hypothesis.
        alpha: Of the length penalty.
        early_stopping: As the field has it: False, True or "never".
        groups: Groups of beams, each avoiding the tokens of those before it
            (Vijayakumar et al. 2016, algorithm 1, Hamming diversity).
        diversity: What a token loses in a choice for each beam that chose it before.
        bonus: Function from a hypothesis's tokens to what its score gains, at most 0.
    """
    width //= groups
    beams = [[([], 0.0)] for _ in range(groups)]
    finished = [[] for _ in range(groups)]
    done = [False] * groups
    for count in range(1, new + 1):
        chosen = []
        for g in range(groups):
            if done[g] or not beams[g]:
                continue
            extensions = []
            values = following([row + tokens for tokens, _ in beams[g]])
            for (tokens, total), log_probabilities in zip(beams[g], values, strict=True):
                for token, value in enumerate(log_probabilities):
                    if value > -math.inf:
                        preference = total + value - diversity * chosen.count(token)
                        extensions.append((preference, [*tokens, token], float(total + value)))
            extensions.sort(key=lambda extension: -extension[0])
            for _, tokens, total in extensions[:width]:
                if tokens[-1] in stop_ids or count == new:
                    score = total / length_penalty(count, alpha) + bonus(tokens)
                    finished[g].append((tokens, total, score))
            finished[g] = sorted(finished[g], key=lambda hypothesis: -hypothesis[2])[:width]
            going = [(t, total) for _, t, total in extensions if t[-1] not in stop_ids]
            beams[g] = going[:width]
            chosen += [tokens[-1] for tokens, _ in beams[g]]
            done[g] = _is_done(beams[g], finished[g], width, count, new, alpha, early_stopping)
    return sorted(itertools.chain(*finished), key=lambda hypothesis: -hypothesis[2])


def _is_done(beams, finished, width, count, new, alpha, early_stopping):
    if len(finished) < width:
        return False
    if early_stopping is True or width == 1 or not beams:
        return True
    length = new if early_stopping == "never" and alpha > 0 else count
    best = max(total for _, total in beams) / length_penalty(length, alpha)
    return best <= finished[-1][2]


def best_of_all(following, row, new, stop_ids, alpha):
    """Returns the `(tokens, total, score)` of the best score among all that there are."""
    best, beginnings = ([], 0.0, -math.inf), [([], 0.0)]
    for count in range(1, new + 1):
        values = following([row + tokens for tokens, _ in beginnings])
        grown = [
            ([*tokens, token], total + value)
            for (tokens, total), log_probabilities in zip(beginnings, values, strict=True)
            for token, value in enumerate(log_probabilities)
        ]
        ends = [x for x in grown if x[0][-1] in stop_ids or count == new]
        scored = [(t, total, total / length_penalty(count, alpha)) for t, total in ends]
        best = max([best, *scored], key=lambda hypothesis: hypothesis[2])
        beginnings = [x for x in grown if x[0][-1] not in stop_ids]
    return best
