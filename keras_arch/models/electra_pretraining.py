"""ELECTRA's pretraining: a generator replaces tokens, a discriminator tells which."""

import keras
from keras import ops

from keras_arch import layers
from keras_arch.models.encoder_heads import inputs_of


def electra_pretraining(generator, discriminator, seed=None):
    """Wires a generator and a discriminator into one model to train both.

    ```
    discriminator = replaced_tokens(electra(config))
    generator = masked_lm(electra(smaller, tables_of=discriminator))
    model = electra_pretraining(generator, discriminator)
    losses = {"tokens": TokenCrossentropy(), "truth": TokenCrossentropy()}
    model.compile("adam", losses, loss_weights={"tokens": 1.0, "truth": 50.0})
    inputs, targets, weights = replaced_token_batch(*mask_for_mlm(...))
    model.fit(inputs, targets, sample_weight=weights)
    ```

    The loss at all real tokens is the discriminator's binary cross-entropy, with the label
    "original" also where the generator drew the original token. It reads drawn tokens, so none of
    its gradient reaches the generator, but for the tables that they share.

    Both are layers of the model. Keras does not keep tables shared in its `.keras` file: save
    `discriminator`, and of the whole the weights.

    Args:
        generator: From `masked_lm`.
        discriminator: From `replaced_tokens`, with the same inputs but `masked_positions`.
        seed: Of the generator's draws; None: other ones in each process.

    Returns:
        A functional model from the generator's inputs and `masked_ids` int32 `[B, M]`, the original
        tokens (-1: none), to a dict: `tokens`, the generator's logits `[B, M, V]`, and `truth`
        `[B, T, 2]`, of each token the discriminator's scores of what is true and of what is not: a
        `TokenCrossentropy` with labels 0 is its loss.

    Raises:
        ValueError: If the two have not these inputs.

    Source: Clark et al. 2020, section 2; the weight of 50: appendix A.
    """
    names, others = sorted(inputs_of(generator)), sorted(inputs_of(discriminator))
    if names != sorted([*others, "masked_positions"]):
        raise ValueError(
            "generator must have the discriminator's inputs and masked_positions; received "
            f"generator inputs {names}, discriminator inputs {others}."
        )
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name)
        for name, x in inputs_of(generator).items()
    }
    inputs["masked_ids"] = keras.Input((None,), dtype="int32", name="masked_ids")
    token_ids, slots, told = (inputs[k] for k in ("token_ids", "masked_positions", "masked_ids"))
    logits = generator({name: inputs[name] for name in names})
    drawn = layers.SampleTokens(seed, name="drawn")(logits)
    original = layers.PutTokens(name="original")(token_ids, slots, told)
    corrupted = layers.PutTokens(name="corrupted")(
        token_ids, slots, ops.where(told < 0, told, drawn)
    )
    score = discriminator({**{name: inputs[name] for name in others}, "token_ids": corrupted})
    truth = ops.where(corrupted != original, score, -score)
    outputs = {"tokens": logits, "truth": ops.stack([truth, ops.zeros_like(truth)], axis=-1)}
    return keras.Model(inputs, outputs, name="electra_pretraining")
