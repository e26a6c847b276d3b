"""Tiny configs of every model in the catalog, in the variants that take other paths."""

import functools

import keras
import numpy as np

import keras_arch as ka
from keras_arch.backend import compile_function

V = 31
CONTEXT = 24

_SHAPE = {"vocabulary_size": V, "width": 16, "layers": 2, "heads": 4, "context_length": CONTEXT}
_ENCODER = {**_SHAPE, "layers": 1}
_RECURRENT = {"vocabulary_size": V, "width": 16, "layers": 2}
_TRANSFORMER = {
    "vocabulary_size": V,
    "width": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "heads": 4,
}
#: Of blocks that another model has, too.
_SHALLOW = _TRANSFORMER | {"decoder_layers": 1}
_PAIRS = {"vocabulary_size": V, "width": 16, "encoder_width": 8, "decoder_width": 16}

#: Label -> config; the label starts with the model's name in the catalog.
DECODERS = {
    "gpt2": ka.models.GPT2Config(**_SHAPE),
    "gpt2-untied": ka.models.GPT2Config(**_SHAPE, tied=False, use_bias=False),
    "llama": ka.models.LlamaConfig(**_SHAPE, hidden_width=24),
    "llama-window": ka.models.LlamaConfig(
        **_SHAPE,
        hidden_width=24,
        key_value_heads=2,
        window=4,
        tied=True,
        head_width=6,
        use_bias=True,
        query_key_norm=True,
        rotary_layout="interleaved",
        rotary_scaling=ka.layers.YarnScaling(4.0, context_length=8, beta_fast=4.0),
    ),
    "ngram": ka.models.NGramConfig(vocabulary_size=V, order=3, width=8, bottleneck=16),
    "rnn_lm": ka.models.RNNLMConfig(**_RECURRENT, residual=True),
    "lstm_lm": ka.models.LSTMLMConfig(**_RECURRENT),
    "lstm_lm-normalised": ka.models.LSTMLMConfig(**_RECURRENT, normalise=True, tied=False),
    "gru_lm": ka.models.GRULMConfig(**_RECURRENT),
    "seq2seq": ka.models.Seq2SeqConfig(**_PAIRS),
    "attention_seq2seq": ka.models.AttentionSeq2SeqConfig(**_PAIRS),
    "transformer": ka.models.TransformerConfig(**_TRANSFORMER),
    "t5": ka.models.T5Config(**_TRANSFORMER, buckets=8, max_distance=10),
    "bart": ka.models.BARTConfig(**_TRANSFORMER, context_length=CONTEXT),
    "marian": ka.models.MarianConfig(**_SHALLOW, context_length=CONTEXT),
}
#: The same for models that read a row whole and give no logits.
ENCODERS = {
    "bert": ka.models.BERTConfig(**_ENCODER),
    "roberta": ka.models.RoBERTaConfig(**_ENCODER),
    "distilbert": ka.models.DistilBERTConfig(**_ENCODER),
    "electra": ka.models.ELECTRAConfig(**_ENCODER, embedding_width=8),
}
CONFIGS = DECODERS | ENCODERS


def build(config, seed=0, scale=0.4, **options):
    """Builds a model with weights large enough for its tokens to matter."""
    model = ka.models.builder(config)(config, **options)
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(random.normal(scale=scale, size=weight.shape))
    return model


@functools.cache
def shared(config, scale=0.4):
    """Returns the model of `build`: one for all tests of a process that only read it."""
    return build(config, scale=scale)


def context_of(model, rows):
    """Returns what the model's source inputs get, by name; {} where it has none."""
    if "source_ids" not in names_of(model):
        return {}
    source_ids = np.random.default_rng(2).integers(0, V, (rows, 5)).astype("int32")
    # Pads on the right, none, pads on the left and inside.
    source_valid = np.array([[1, 1, 1, 0, 0], [1] * 5, [0, 1, 0, 1, 1]], "bool")
    return {"source_ids": source_ids, "source_valid": np.resize(source_valid, (rows, 5))}


def names_of(model):
    """Returns the names of the model's inputs."""
    return {tensor.name for tensor in model.inputs}


def inputs_of(model, token_ids, valid=None):
    """Returns all inputs of the model, by name."""
    token_ids = np.asarray(token_ids, "int32")
    valid = np.ones(token_ids.shape, "bool") if valid is None else np.asarray(valid)
    inputs = {"token_ids": token_ids, "valid": valid, **context_of(model, len(token_ids))}
    if "type_ids" in names_of(model):
        inputs["type_ids"] = token_ids % 2
    return inputs


def logits(model, token_ids, valid=None):
    """Returns the model's logits as numpy; of an encoder, its vectors of the tokens."""
    return keras.ops.convert_to_numpy(tokens_output(model(inputs_of(model, token_ids, valid))))


def tokens_output(outputs):
    """Returns what a model says of each token, `[B, T, ...]`."""
    return outputs["hidden"] if isinstance(outputs, dict) else outputs


def stepped_logits(model, token_ids, valid, chunks, context=None):
    """Returns the logits that a `Stepper` gives for chunks of these sizes, put together."""
    stepper = ka.generation.Stepper(model)
    context = context or context_of(model, len(token_ids))

    def start(*values):
        return stepper.start(len(token_ids), CONTEXT, dict(zip(context, values, strict=True)))

    state = compile_function(start, stepper.variables)(*context.values())
    steps = {size: compile_function(stepper.step, stepper.variables) for size in set(chunks)}
    outputs, begin = [], 0
    for size in chunks:
        part = slice(begin, begin + size)
        output, state = steps[size](token_ids[:, part], valid[:, part], state)
        outputs.append(keras.ops.convert_to_numpy(output))
        begin += size
    return np.concatenate(outputs, axis=1)


def naive_greedy(model, rows, new, context=None):
    """Generates by running the whole model again for each token."""
    lengths = np.array([len(row) for row in rows])
    token_ids = np.zeros((len(rows), CONTEXT), "int32")
    for i, row in enumerate(rows):
        token_ids[i, : len(row)] = row
    every_row = np.arange(len(rows))
    for n in range(new):
        # Padded on the right to one shape: a token does not see what follows it.
        valid = np.arange(CONTEXT)[None] < lengths[:, None] + n
        inputs = {**inputs_of(model, token_ids, valid), **(context or {})}
        scores = model.predict_on_batch(inputs)
        chosen = scores[every_row, lengths + n - 1].argmax(axis=-1)
        token_ids[every_row, lengths + n] = chosen
    return np.stack([row[k : k + new] for row, k in zip(token_ids, lengths, strict=True)])
