import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, logits, naive_greedy, stepped_logits


def _inputs():
    return {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }


def _randomise(model, scale=0.4):
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(scale=scale, size=weight.shape))
    return model


def test_a_grafted_head_generates():
    llama = build(CONFIGS["llama"])
    blocks = [llama.get_layer(f"block_{i}").output for i in range(2)]
    x = keras.layers.Concatenate(name="both")(blocks)
    x = keras.layers.Dense(20, activation="tanh", name="hidden")(x)
    model = keras.Model(llama.inputs, keras.layers.Dense(V, name="grafted_head")(x))
    _randomise(model)
    rows = [[1, 2, 3], [4]]
    generated = ka.generate(model, rows, max_new_tokens=8)
    np.testing.assert_array_equal(generated.token_ids, naive_greedy(model, rows, 8))


def test_a_model_of_mixed_parts_generates():
    inputs = _inputs()
    embedding = ka.layers.TokenEmbedding(V, 16, embeddings_initializer="normal", name="tokens")
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    x = embedding(inputs["token_ids"]) + ka.layers.SinusoidalPositions(16)(positions)
    biases = [
        ka.layers.AlibiBias(4, name="alibi")(positions),
        ka.layers.RelativeBias(4, buckets=8, max_distance=16, name="relative")(positions),
    ]
    for i, bias in enumerate(biases):
        block = ka.layers.ParallelBlock(
            ka.layers.SelfAttention(4, 4, key_value_heads=1, logit_cap=5.0),
            ka.layers.GatedFeedForward(24, activation="gelu"),
            ka.layers.RMSNorm(),
            name=f"block_{i}",
        )
        x = block(x, positions, inputs["valid"], bias=bias)
    model = _randomise(keras.Model(inputs, embedding(x, reverse=True)))
    rows = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    generated = ka.generate(model, rows, max_new_tokens=8)
    np.testing.assert_array_equal(generated.token_ids, naive_greedy(model, rows, 8))


@keras.saving.register_keras_serializable(package="keras_arch_tests")
class Memory(ka.layers.Part):
    """Adds the mean of the source's real vectors, projected once at `start`."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.projection = keras.layers.Dense(width, name="projection")

    def build(self, x_shape):
        self.projection.build((None, None, self.width))

    def call(self, x, memory, memory_valid):
        return x + self._mean(memory, memory_valid)

    def start(self, batch, length, memory, memory_valid):
        return {"mean": self._mean(memory, memory_valid)}

    def step(self, x, *, state, cursor):
        return x + state["mean"], state

    def _mean(self, memory, memory_valid):
        weight = ops.cast(memory_valid, "float32")[..., None]
        total = ops.sum(self.projection(memory) * weight, axis=1, keepdims=True)
        return total / ops.sum(weight, axis=1, keepdims=True)


def _encoder_decoder():
    inputs = _inputs()
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    source_valid = keras.Input((None,), dtype="bool", name="source_valid")
    embedding = ka.layers.TokenEmbedding(V, 16, name="tokens")
    memory = keras.layers.Dense(16, activation="tanh", name="encoder")(embedding(source_ids))
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    x = Memory(16, name="memory")(
        embedding(inputs["token_ids"]), memory=memory, memory_valid=source_valid
    )
    block = ka.layers.DecoderBlock(
        ka.layers.PreNorm(ka.layers.SelfAttention(4, 4), ka.layers.RMSNorm()),
        ka.layers.PreNorm(ka.layers.FeedForward(24), ka.layers.RMSNorm()),
        name="block",
    )
    x = block(x, positions, inputs["valid"])
    # The length of the source also reaches the time side bare.
    size = ops.sum(ops.cast(source_valid, "float32"), axis=1)[:, None, None]
    inputs |= {"source_ids": source_ids, "source_valid": source_valid}
    return _randomise(keras.Model(inputs, embedding(x * (1.0 + 0.01 * size), reverse=True)))


def test_the_context_side_runs_once_at_start():
    model = _encoder_decoder()
    stepper = ka.generation.Stepper(model)
    assert sorted(stepper.context_inputs) == ["source_ids", "source_valid"]
    random = np.random.default_rng(0)
    context = {
        "source_ids": random.integers(0, V, (2, 5)).astype("int32"),
        "source_valid": np.array([[True] * 5, [True] * 3 + [False] * 2]),
    }
    token_ids = random.integers(0, V, (2, 7)).astype("int32")
    valid = np.ones((2, 7), "bool")
    full = ops.convert_to_numpy(model({**context, "token_ids": token_ids, "valid": valid}))
    stepped = stepped_logits(model, token_ids, valid, [4, 1, 2], context)
    np.testing.assert_allclose(stepped, full, rtol=0, atol=1e-5)


def test_context_must_be_complete():
    stepper = ka.generation.Stepper(_encoder_decoder())
    with pytest.raises(ValueError, match=r"source_ids.*source_valid.*received \['source_ids'\]"):
        stepper.start(1, 4, {"source_ids": ops.zeros((1, 3), "int32")})


def _model_with(make):
    inputs = _inputs()
    x = ka.layers.TokenEmbedding(V, 16, name="tokens")(inputs["token_ids"])
    return _randomise(keras.Model(inputs, make(x)))


@keras.saving.register_keras_serializable(package="keras_arch_tests")
def running_sum(x):
    return ops.cumsum(x, axis=1)


def _later(layer):
    return lambda x: keras.layers.Dense(V, name="head")(layer(x))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (_later(keras.layers.LSTM(16, return_sequences=True, name="memory")), "memory"),
        (_later(keras.layers.GRU(16, return_sequences=True, name="gru")), "gru"),
        (_later(keras.layers.Conv1D(16, 3, padding="causal", name="window")), "window"),
        (
            _later(keras.layers.Conv1D(16, 2, dilation_rate=8, padding="causal", name="far")),
            "far",
        ),
        (_later(keras.layers.Activation(running_sum, name="sum")), "sum"),
        (_later(ka.layers.FeedForward(8, running_sum, name="ff")), "ff"),
        (_later(keras.layers.GlobalAveragePooling1D(name="pool")), "pool"),
        (_later(lambda x: ops.cumsum(x, axis=1)), "cumsum"),
        (_later(keras.layers.Softmax(axis=1, name="over_time")), "over_time"),
        (
            _later(
                ka.layers.PreNorm(
                    keras.layers.Conv1D(16, 2, padding="causal"),
                    ka.layers.RMSNorm(),
                    name="residual",
                )
            ),
            "residual",
        ),
    ],
    ids=[
        "lstm",
        "gru",
        "convolution",
        "dilated convolution",
        "activation",
        "activation of a part",
        "pooling",
        "operation",
        "softmax over time",
        "inside a part",
    ],
)
def test_a_layer_that_mixes_time_without_step_is_refused_by_name(make, name):
    with pytest.raises(ValueError, match=f"layer '{name}.*cannot be decoded step by step"):
        ka.generation.Stepper(_model_with(make))


def test_foreign_pointwise_layers_pass():
    def make(x):
        x = keras.layers.Concatenate(name="twice")([x, ops.tanh(x)])
        return keras.layers.Dense(V, name="head")(keras.layers.LeakyReLU()(x))

    assert ka.generation.Stepper(_model_with(make)).vocabulary_size == V


@pytest.mark.parametrize("label", ["gpt2", "llama"])
def test_hidden_and_head_make_a_step(label):
    model = build(CONFIGS[label])
    stepper = ka.generation.Stepper(model)
    ids, valid = ops.convert_to_tensor(np.array([[3, 1, 2]], "int32")), ops.ones((1, 3), "bool")
    hidden, state = stepper.hidden(ids, valid, stepper.start(1, 6))
    # The table or matrix of the head alone.
    matrix = [w for w in model.weights if V in w.shape][-1]
    matrix = matrix if matrix.shape[1] == V else ops.transpose(matrix)
    expected, stepped = stepper.step(ids, valid, stepper.start(1, 6))
    for found in (stepper.head(hidden), ops.matmul(hidden, matrix)):
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, expected)), atol=1e-5)
    assert int(state["cursor"]) == int(stepped["cursor"]) == 3


def test_a_step_beyond_the_slots_is_refused():
    stepper = ka.generation.Stepper(build(CONFIGS["gpt2"]))
    ids, valid = ops.zeros((1, 4), "int32"), ops.ones((1, 4), "bool")
    _, state = stepper.step(ids, valid, stepper.start(1, 6))
    with pytest.raises(ValueError, match="6 slots, of which 4 are written; received 4 more"):
        stepper.step(ids, valid, state)
    with pytest.raises(ValueError, match=r"token_ids\.shape=\(1, 4\), valid\.shape=\(1, 1\)"):
        stepper.step(ids, valid[:, :1], state)
    with pytest.raises(ValueError, match="length=0"):
        stepper.start(1, 0)


def test_packed_models_decode_round_pads():
    packed, plain = (build(CONFIGS["gpt2"], packed=flag) for flag in (True, False))
    token_ids = np.random.default_rng(0).integers(0, V, (1, 8)).astype("int32")
    valid = np.array([[1, 1, 1, 0, 1, 1, 1, 1]], "bool")
    stepped = stepped_logits(packed, token_ids, valid, [4, 4])
    full = logits(plain, token_ids, valid)
    np.testing.assert_allclose(stepped[valid], full[valid], rtol=0, atol=1e-5)


def test_attention_that_sees_later_tokens_is_refused():
    inputs = _inputs()
    embedding = ka.layers.TokenEmbedding(V, 16, name="tokens")
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    attention = ka.layers.SelfAttention(4, 4, causal=False, name="both_ways")
    x = attention(embedding(inputs["token_ids"]), positions, inputs["valid"])
    stepper = ka.generation.Stepper(keras.Model(inputs, embedding(x, reverse=True)))
    with pytest.raises(ValueError, match=r"both_ways.*causal=False"):
        stepper.start(1, 4)


def test_inputs_and_outputs_are_checked():
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = ka.layers.TokenEmbedding(V, 16)(ids)
    with pytest.raises(ValueError, match=r"'token_ids' and 'valid'.*received inputs \['ids'\]"):
        ka.generation.Stepper(keras.Model(ids, x))
    inputs = _inputs()
    x = ka.layers.TokenEmbedding(V, 16)(inputs["token_ids"])
    with pytest.raises(ValueError, match="one output; received 2"):
        ka.generation.Stepper(keras.Model(inputs, [x, x * 2.0]))
    with pytest.raises(ValueError, match=r"functional keras\.Model"):
        ka.generation.Stepper(keras.Sequential([keras.layers.Dense(2)]))


def test_limits_are_read_from_the_graph():
    stepper = ka.generation.Stepper(build(CONFIGS["gpt2"]))
    assert (stepper.context_length, stepper.vocabulary_size) == (CONTEXT, V)
    with pytest.raises(ValueError, match=f"length={CONTEXT + 1}, context_length={CONTEXT}"):
        logits(build(CONFIGS["llama"]), np.zeros((1, CONTEXT + 1)))
