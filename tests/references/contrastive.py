"""Contrastive search by running the whole model anew for each candidate, in float64."""

import numpy as np


def contrastive_search(run, row, new, k, alpha):
    """Returns the tokens that follow a row.

    Source: Su et al. 2022, equation 5.

    Args:
        run: Function from token ids `[1, T]` to hidden states `[1, T, D]` and logits `[1, T, V]`.
        row: List of token ids.
        new: Number of tokens.
        k: Candidates.
        alpha: Weight of the largest cosine.
    """
    row, begin = list(row), len(row)
    for _ in range(new):
        hidden, logits = run(np.array([row]))
        past, scores = hidden[0].astype("float64"), logits[0, -1].astype("float64")
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        best, chosen = -np.inf, None
        for token in np.argsort(-scores, kind="stable")[:k]:
            candidate = run(np.array([[*row, token]]))[0][0, -1].astype("float64")
            norms = np.linalg.norm(past, axis=-1) * np.linalg.norm(candidate)
            likeness = (past @ candidate / norms).max()
            score = (1 - alpha) * probabilities[token] - alpha * likeness
            if score > best:
                best, chosen = score, int(token)
        row.append(chosen)
    return row[begin:]
