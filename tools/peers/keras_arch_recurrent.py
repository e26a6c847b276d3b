"""This project's recurrent models."""

import numpy as np

import keras_arch as ka
from peers.keras_arch_steps import time_steps
from peers.recurrent_shapes import LSTMShape


def _model(shape):
    if isinstance(shape, LSTMShape):
        return ka.models.lstm_lm(ka.models.LSTMLMConfig(**shape._asdict(), tied=False))
    config = ka.models.AttentionSeq2SeqConfig(
        vocabulary_size=shape.vocabulary_size,
        width=shape.width,
        encoder_width=shape.width,
        decoder_width=shape.width,
        bridge="zero",
        tied=False,
    )
    return ka.models.attention_seq2seq(config)


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    valid = np.ones(inputs.shape, "bool")
    values = {"token_ids": inputs, "valid": valid}
    if not isinstance(shape, LSTMShape):
        values |= {"source_ids": inputs, "source_valid": valid}
    return time_steps(model, values, targets, steps)
