"""Which of several rows fits: each is scored alone, and the softmax is over them."""

import keras
from keras import ops

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.models.encoder_heads import inputs_of, sequence_classification


def multiple_choice(encoder, choices, dropout=0.0):
    """Lets an encoder choose among several rows, such as a question with each of its answers.

    Args:
        encoder: As in `sequence_classification`.
        choices: C, rows to choose from.
        dropout: As in `sequence_classification`.

    Returns:
        A functional model from the encoder's inputs, with an axis more `[B, C, T]`, to logits
        `[B, C]`. The encoder with its score is one layer of it.

    Raises:
        ValueError: As `sequence_classification`, or if `choices` is not positive.

    Source: Devlin et al. 2019, section 4.4.
    """
    check_positive(choices=choices)
    score = sequence_classification(encoder, 1, dropout)
    inputs = {
        name: keras.Input((choices, *x.shape[1:]), dtype=x.dtype, name=name)
        for name, x in inputs_of(encoder).items()
    }
    rows = {name: layers.FoldChoices(name=f"{name}_rows")(x) for name, x in inputs.items()}
    logits = ops.reshape(score(rows), (-1, choices))
    return keras.Model(inputs, logits, name=f"{encoder.name}_multiple_choice")
