"""What ELECTRA's pretraining is fitted to: masked tokens, and the truth about each token."""

import numpy as np


def replaced_token_batch(inputs, targets, weights):
    """Makes of masked rows what `electra_pretraining` is fitted to.

    Args:
        inputs: From `mask_for_mlm`, maybe with `type_ids`; so are the others. ELECTRA masks all
            chosen tokens: `mask_share=1.0, random_share=0.0`.
        targets: int `[B, M]`.
        weights: bool `[B, M]`.

    Returns:
        `(inputs, targets, weights)`: the inputs with `masked_ids`; dicts by output, `tokens` and
        `truth`: the latter's target is 0 and its weight 1 at every real token.

    Source: Clark et al. 2020, section 2.
    """
    valid = inputs["valid"]
    return (
        {**inputs, "masked_ids": targets},
        {"tokens": targets, "truth": np.zeros(valid.shape, "int32")},
        {"tokens": weights, "truth": valid},
    )
