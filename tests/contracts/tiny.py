"""Tiny configs of every model in the catalog, in the variants that take other paths."""

import keras
import numpy as np

import keras_arch as ka
from keras_arch.backend import compile_function

V = 31
CONTEXT = 24

_SHAPE = {"vocabulary_size": V, "width": 16, "layers": 2, "heads": 4, "context_length": CONTEXT}

#: Label -> config; the label starts with the model's name in the catalog.
CONFIGS = {
    "gpt2": ka.models.GPT2Config(**_SHAPE),
    "gpt2-untied": ka.models.GPT2Config(**_SHAPE, tied=False, use_bias=False),
    "llama": ka.models.LlamaConfig(**_SHAPE, hidden_width=24),
    "llama-window": ka.models.LlamaConfig(
        **_SHAPE,
        hidden_width=24,
        key_value_heads=2,
        window=4,
        tied=True,
        rotary_layout="interleaved",
        rotary_scaling=ka.layers.YarnScaling(4.0, context_length=8, beta_fast=4.0),
    ),
    "ngram": ka.models.NGramConfig(vocabulary_size=V, order=3, width=8, bottleneck=16),
}


def build(config, seed=0, scale=0.4, **options):
    """Builds a model with weights large enough for its tokens to matter."""
    model = ka.models.builder(config)(config, **options)
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(random.normal(scale=scale, size=weight.shape))
    return model


def logits(model, token_ids, valid=None):
    """Returns the model's logits as numpy."""
    token_ids = np.asarray(token_ids, "int32")
    valid = np.ones(token_ids.shape, "bool") if valid is None else np.asarray(valid)
    return keras.ops.convert_to_numpy(model({"token_ids": token_ids, "valid": valid}))


def stepped_logits(model, token_ids, valid, chunks, context=None):
    """Returns the logits that a `Stepper` gives for chunks of these sizes, put together."""
    stepper = ka.generation.Stepper(model)
    context = context or {}

    def run(token_ids, valid, *values):
        state = stepper.start(token_ids.shape[0], CONTEXT, dict(zip(context, values, strict=True)))
        outputs, begin = [], 0
        for size in chunks:
            part = slice(begin, begin + size)
            output, state = stepper.step(token_ids[:, part], valid[:, part], state)
            outputs.append(output)
            begin += size
        return keras.ops.concatenate(outputs, axis=1)

    run = compile_function(run, stepper.variables)
    return keras.ops.convert_to_numpy(run(token_ids, valid, *context.values()))


def naive_greedy(model, rows, new):
    """Generates by running the whole model again for each token."""
    lengths = np.array([len(row) for row in rows])
    token_ids = np.zeros((len(rows), CONTEXT), "int32")
    for i, row in enumerate(rows):
        token_ids[i, : len(row)] = row
    every_row = np.arange(len(rows))
    for n in range(new):
        # Padded on the right to one shape: a token does not see what follows it.
        valid = np.arange(CONTEXT)[None] < lengths[:, None] + n
        scores = model.predict_on_batch({"token_ids": token_ids, "valid": valid})
        chosen = scores[every_row, lengths + n - 1].argmax(axis=-1)
        token_ids[every_row, lengths + n] = chosen
    return np.stack([row[k : k + new] for row, k in zip(token_ids, lengths, strict=True)])
