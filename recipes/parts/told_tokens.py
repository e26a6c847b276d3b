"""What an encoder is pretrained to tell: masked tokens, or which tokens were replaced.

Both have

    options  of `keras_arch.objectives.mask_for_mlm`
    build    of an encoder: the model that is kept
    trained  of that model and the encoder's config: the model to compile and fit
    batch    of what `mask_for_mlm` returns: inputs, targets and weights
    shown    of the model, what `mask_for_mlm` returned, and the mask's id: rows of ids `[B, T]`
"""

import dataclasses

import keras
import numpy as np

import keras_arch as ka


class MaskedTokens:
    """BERT's: what stands at the masks (Devlin et al. 2019, section 3.1)."""

    options = {}

    def build(self, encoder):
        return ka.models.masked_lm(encoder)

    def trained(self, model, config):
        return model

    def batch(self, inputs, targets, weights):
        return inputs, targets, weights

    def shown(self, model, inputs, targets, weights, mask_id):
        found = model.predict_on_batch(inputs).argmax(axis=-1)
        return {"masked": inputs["token_ids"], "filled": put(inputs, found, weights)}


class ReplacedTokens:
    """ELECTRA's: which tokens a generator of half the width put there (Clark et al. 2020)."""

    options = {"mask_share": 1.0, "random_share": 0.0}

    def build(self, encoder):
        return ka.models.replaced_tokens(encoder)

    def trained(self, model, config):
        small = dataclasses.replace(
            config, width=config.width // 2, heads=max(config.heads // 2, 1), hidden_width=None
        )
        generator = ka.models.masked_lm(ka.models.electra(small, tables_of=model))
        both = ka.models.electra_pretraining(generator, model)
        inputs = {x.name: x for x in both.inputs}
        outputs = both.output
        truth = GeneratorLoss(name="generator_loss")(
            outputs["truth"], outputs["tokens"], inputs["masked_ids"]
        )
        return keras.Model(inputs, truth, name=both.name)

    def batch(self, inputs, targets, weights):
        inputs, targets, weights = ka.objectives.replaced_token_batch(inputs, targets, weights)
        return inputs, targets["truth"], weights["truth"]

    def shown(self, model, inputs, targets, weights, mask_id):
        # In place of a generator's tokens those of another of the masks.
        ids = put(inputs, np.roll(targets, 1, axis=0), weights & np.roll(weights, 1, axis=0))
        ids = np.where(ids == mask_id, put(inputs, targets, weights), ids)
        names = [x.name for x in model.inputs]
        scores = model.predict_on_batch({n: inputs[n] for n in names} | {"token_ids": ids})
        return {"replaced": ids, "suspected": np.where(scores > 0, mask_id, ids)}


class GeneratorLoss(keras.layers.Layer):
    """Adds the generator's loss to the discriminator's, which it passes on: 1 to 50.

    Call arguments:
        truth: float `[B, T, 2]`, of the discriminator.
        logits: float `[B, M, V]`, of the generator.
        targets: int `[B, M]`, what it is to tell; -1: nothing.
    """

    def call(self, truth, logits, targets):
        # Adam takes no notice of what both are multiplied by.
        self.add_loss(ka.objectives.TokenCrossentropy()(targets, logits) / 50.0)
        return truth

    def compute_output_spec(self, truth, logits, targets):
        return keras.KerasTensor(truth.shape, truth.dtype)


def put(inputs, token_ids, weights):
    """Returns the rows of ids `[B, T]` with tokens `[B, M]` at their masks that have a weight."""
    rows = inputs["token_ids"].copy()
    row, place = np.nonzero(weights)
    rows[row, inputs["masked_positions"][row, place]] = token_ids[row, place]
    return rows
