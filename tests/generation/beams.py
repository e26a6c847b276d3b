"""What the tests of beam search share: models, and how the references read them."""

import dataclasses

import numpy as np

from tests.contracts.tiny import CONFIGS, CONTEXT, build

ROWS = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]


def small(label, **changes):
    """Returns a model of one layer."""
    return build(dataclasses.replace(CONFIGS[label], layers=1, **changes))


def following(model, context=None):
    """Returns what the references take: the log-probabilities of the token after each row."""
    context = context or {}

    def run(rows):
        length = len(rows[0])
        # Padded to few shapes, on the right: a token does not see what follows it.
        token_ids = np.zeros((4 if len(rows) <= 4 else 64, CONTEXT), "int32")
        token_ids[: len(rows), :length] = rows
        valid = np.broadcast_to(np.arange(CONTEXT) < length, token_ids.shape)
        inputs = {name: np.repeat(x, len(token_ids), axis=0) for name, x in context.items()}
        z = model.predict_on_batch({"token_ids": token_ids, "valid": valid, **inputs})
        z = z[: len(rows), length - 1].astype("float64")
        top = z.max(axis=-1, keepdims=True)
        return z - top - np.log(np.exp(z - top).sum(axis=-1, keepdims=True))

    return run


def check(found, i, expected):
    """Compares row `i` of what was found with the reference's hypotheses."""
    for n, (tokens, total, score) in enumerate(expected[: found.totals.shape[1]]):
        assert found.token_ids[i, n, found.valid[i, n]].tolist() == tokens, (i, n)
        assert not found.token_ids[i, n, len(tokens) :].any()
        np.testing.assert_allclose(found.totals[i, n], total, atol=2e-5, rtol=0)
        np.testing.assert_allclose(found.scores[i, n], score, atol=2e-5, rtol=0)
