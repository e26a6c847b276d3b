"""This project's recurrent models."""

import numpy as np

import keras_arch as ka
from peers.fit_steps import step_seconds
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
    ka.training.keep_freed_memory()
    model = _model(shape)
    model.compile(
        ka.training.AdamW(1e-3),
        ka.objectives.TokenCrossentropy(),
        jit_compile=ka.training.strategy("one").jit_compile(),
    )
    valid = np.ones(inputs.shape, "bool")
    values = {"token_ids": inputs, "valid": valid}
    if not isinstance(shape, LSTMShape):
        values |= {"source_ids": inputs, "source_valid": valid}
    return step_seconds(model, values, targets, steps)
