"""Heads on an encoder: functions from its model to a model of the same layers, and more."""

import keras

from keras_arch import layers
from keras_arch.checks import check_positive, check_rate
from keras_arch.layers.activations import get_activation
from keras_arch.models.encoder_only import TOKENS


def sequence_classification(encoder, classes, dropout=0.0):
    """Puts a classifier of whole rows on an encoder: `softmax(W c + b)` without the softmax.

    c is the `pooled` vector of an encoder that has one, else the first token's.

    Args:
        encoder: A model of `bert`, `roberta`, `distilbert` or `electra`; or any functional model
            from `token_ids`, `valid` and maybe `type_ids` to a dict with `hidden` `[B, T, D]`, that
            has a `TokenEmbedding` named "tokens".
        classes: C.
        dropout: Rate of dropped entries of c.

    Returns:
        A functional model from the encoder's inputs to logits `[B, C]`.

    Raises:
        ValueError: If an argument is out of range, or the encoder gives no such dict.

    Source: Devlin et al. 2019, section 4.1.
    """
    check_positive(classes=classes)
    x = row_vector(encoder)
    return headed(encoder, scored(encoder, x, classes, dropout, "classes"), "classification")


def token_vectors(encoder):
    """Leaves an encoder's pooler out, for heads that do not read it and files that have none.

    Args:
        encoder: As in `sequence_classification`.

    Returns:
        A functional model from the encoder's inputs to a dict with `hidden` `[B, T, D]` alone.
    """
    return headed(encoder, {"hidden": hidden_of(encoder)}, "token_vectors")


def with_pooler(encoder, activation="tanh"):
    """Puts a pooler on an encoder, for classifiers: the first token's vector through a matrix.

    DistilBERT's published classifiers have one with "relu", ELECTRA's one with "gelu".

    Args:
        encoder: As in `sequence_classification`.
        activation: Of the pooler.

    Returns:
        A functional model from the encoder's inputs to a dict: `hidden` `[B, T, D]`, and `pooled`
        `[B, D]`.
    """
    x = hidden_of(encoder)
    first = layers.FirstToken(name="first_token")(x, inputs_of(encoder)["valid"])
    pooled = dense(encoder, x.shape[-1], "pooler", activation)(first)
    return headed(encoder, {"hidden": x, "pooled": pooled}, "pooler")


def next_sentence(encoder):
    """Puts BERT's second head of pretraining on an encoder: whether a pair's texts belong together.

    Args:
        encoder: As in `sequence_classification`.

    Returns:
        A functional model from the encoder's inputs to logits `[B, 2]`: 0, the second text follows
        the first; 1, it is a random one.

    Source: Devlin et al. 2019, section 3.1.
    """
    x = scored(encoder, row_vector(encoder), 2, 0.0, "next_sentence")
    return headed(encoder, x, "next_sentence")


def token_classification(encoder, classes, dropout=0.0):
    """Puts a classifier of each token on an encoder: names of entities, parts of speech.

    Args:
        encoder: As in `sequence_classification`.
        classes: C.
        dropout: Rate of dropped entries of the tokens' vectors.

    Returns:
        A functional model from the encoder's inputs to logits `[B, T, C]`.

    Source: Devlin et al. 2019, section 5.3.
    """
    check_positive(classes=classes)
    x = scored(encoder, hidden_of(encoder), classes, dropout, "classes")
    return headed(encoder, x, "tagging")


def span_answers(encoder):
    """Puts a head on an encoder that finds where an answer starts and ends.

    Train it with `TokenCrossentropy` on labels `[B, 2]`, first and last token of the answer; -1
    where a row shall not count.

    Args:
        encoder: As in `sequence_classification`.

    Returns:
        A functional model from the encoder's inputs to logits `[B, 2, T]`, of start and end; pads
        have no chance.

    Source: Devlin et al. 2019, section 4.2.
    """
    x, valid = hidden_of(encoder), inputs_of(encoder)["valid"]
    scores = layers.SpanScores(initializer_of(encoder), name="span_scores")
    return headed(encoder, scores(x, valid), "span_answers")


def replaced_tokens(encoder, activation="gelu"):
    """Puts ELECTRA's head on an encoder: whether each token is another than in the original text.

    Args:
        encoder: As in `sequence_classification`.
        activation: Of the layer between.

    Returns:
        A functional model from the encoder's inputs to logits `[B, T]`, positive: replaced.

    Source: Clark et al. 2020, section 2.
    """
    x = hidden_of(encoder)
    x = dense(encoder, x.shape[-1], "replaced_dense", activation)(x)
    x = dense(encoder, 1, "replaced_score")(x)
    return headed(encoder, keras.layers.Reshape((-1,), name="replaced")(x), "replaced_tokens")


def inputs_of(encoder):
    """Returns the encoder's symbolic inputs, by name."""
    return {x.name: x for x in encoder.inputs}


def hidden_of(encoder):
    """Returns the encoder's vectors of the tokens, symbolic `[B, T, D]`.

    Raises:
        ValueError: If its output is no dict with them.
    """
    return _outputs(encoder)["hidden"]


def row_vector(encoder):
    """Returns what stands for a row, symbolic `[B, D]`: `pooled`, or else its first token's vector.

    Raises:
        ValueError: If the encoder's output is no dict with the vectors of the tokens.
    """
    outputs = _outputs(encoder)
    if "pooled" in outputs:
        return outputs["pooled"]
    return layers.FirstToken(name="first_token")(outputs["hidden"], inputs_of(encoder)["valid"])


def scored(encoder, x, classes, dropout, name):
    """Wires dropout and a matrix to scores of `classes`."""
    check_rate(dropout=dropout)
    x = layers.Dropout(dropout, name=f"{name}_dropout")(x)
    return dense(encoder, classes, name)(x)


def dense(encoder, units, name, activation=None):
    """Returns a matrix with bias that starts as the encoder's do."""
    return keras.layers.Dense(
        units, get_activation(activation), kernel_initializer=initializer_of(encoder), name=name
    )


def initializer_of(encoder):
    """Returns an initializer like that of the encoder's table of tokens."""
    return encoder.get_layer(TOKENS).embeddings_initializer.clone()


def headed(encoder, outputs, head, **inputs):
    """Returns the functional model from the encoder's inputs, and more, to the head's outputs."""
    return keras.Model(inputs_of(encoder) | inputs, outputs, name=f"{encoder.name}_{head}")


def _outputs(encoder):
    outputs = encoder.output
    if not isinstance(outputs, dict) or "hidden" not in outputs:
        raise ValueError(
            "encoder must give a dict with 'hidden', the vectors of the tokens; received "
            f"encoder.output={outputs!r}."
        )
    return outputs
