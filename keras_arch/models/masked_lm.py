"""The head that fills masks, alone and with BERT's second head of pretraining."""

import keras

from keras_arch import layers
from keras_arch.models.encoder_heads import dense, headed, hidden_of, next_sentence
from keras_arch.models.encoder_only import TOKENS


def masked_lm(encoder, activation="gelu"):
    """Puts the head on an encoder that tells what stands at some of its tokens.

    ```
    hidden ── TakeTokens ── Dense ── LayerNorm ── tokens (the table) ── AddBias ── logits
    ```

    Only those tokens are scored: with 15 % of them masked, a seventh of the work.

    Args:
        encoder: As in `sequence_classification`; it must also have a norm named "embedding_norm",
            whose epsilon the head's norm has.
        activation: Of the layer before the table.

    Returns:
        A functional model from the encoder's inputs and `masked_positions` int32 `[B, M]`, columns
        of `token_ids`, to logits `[B, M, V]`. `keras_arch.objectives.mask_for_mlm` makes
        the inputs, targets and weights.

    Raises:
        ValueError: If the encoder's output is no dict with `hidden`.

    Source: Devlin et al. 2019, section 3.1; the layers before the table as in its code.
    """
    places = keras.Input((None,), dtype="int32", name="masked_positions")
    table = encoder.get_layer(TOKENS)
    epsilon = encoder.get_layer("embedding_norm").epsilon
    x = layers.TakeTokens(name="masked_tokens")(hidden_of(encoder), places)
    x = dense(encoder, table.width, "prediction_dense", activation)(x)
    x = layers.LayerNorm(epsilon, name="prediction_norm")(x)
    x = layers.AddBias(name="prediction_bias")(table(x, reverse=True))
    return headed(encoder, x, "masked_lm", masked_positions=places)


def bert_pretraining(encoder, activation="gelu"):
    """Puts both heads of BERT's pretraining on an encoder.

    Args:
        encoder: As in `masked_lm`.
        activation: As in `masked_lm`.

    Returns:
        A functional model with the inputs of `masked_lm`, to a dict: `tokens`, the logits of
        `masked_lm`, and `next_sentence`, those of `next_sentence`.

    Source: Devlin et al. 2019, section 3.1.
    """
    tokens, pairs = masked_lm(encoder, activation), next_sentence(encoder)
    inputs = {x.name: x for x in tokens.inputs}
    outputs = {"tokens": tokens.output, "next_sentence": pairs.output}
    return keras.Model(inputs, outputs, name=f"{encoder.name}_pretraining")
