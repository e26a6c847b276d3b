import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import (
    AdditiveAttention,
    ContextAttention,
    LocalAttention,
    LocationAttention,
    MultiplicativeAttention,
)
from tests.layers import rows, sources
from tests.references import context_attention

#: Name -> function that makes one, and the width of the memory it is tried on.
ATTENTIONS = {
    "additive": (lambda: AdditiveAttention(7), 6),
    "additive with bias": (lambda: AdditiveAttention(7, use_bias=True), 6),
    "normalised": (lambda: AdditiveAttention(7, normalised=True, use_bias=True), 6),
    "coverage": (lambda: AdditiveAttention(7, use_bias=True, coverage=True), 6),
    "dot": (MultiplicativeAttention, rows.WIDTH),
    "general": (lambda: MultiplicativeAttention(general=True), 6),
    "local": (lambda: LocalAttention(2, 3, general=True), 6),
    "local dot": (lambda: LocalAttention(1, 3), rows.WIDTH),
    "location": (lambda: LocationAttention(5), 6),
}
every_attention = pytest.mark.parametrize(
    ("make", "width"), ATTENTIONS.values(), ids=ATTENTIONS.keys()
)


def arguments(layer, width):
    """Queries, memory, its validity, and coverage if it is read."""
    inputs = [rows.inputs(), sources.memory(width), sources.VALID]
    if layer.reads_coverage:
        inputs.append(abs(rows.normal(rows.BATCH, rows.TIME, sources.LENGTH, seed=8)))
    return inputs


def expected(layer, query, memory, memory_valid, coverage=None):
    weigh = sources.weigher(layer)

    def of_row(b, t, vector, vectors):
        seen = () if coverage is None else (coverage[b, t, memory_valid[b]],)
        return weigh(vector, vectors, *seen)

    return context_attention.attend(query.astype("float64"), memory, memory_valid, of_row)


@every_attention
def test_equals_the_reference(make, width):
    layer = sources.built(make(), rows.WIDTH, width)
    inputs = arguments(layer, width)
    context, weights = expected(layer, *inputs)
    np.testing.assert_allclose(rows.run(layer, *inputs), context, atol=1e-5)
    found = rows.run(layer.attention_weights, *inputs)
    np.testing.assert_allclose(found, weights, atol=1e-6)
    # Exactly: a pad gets nothing, and a source of pads gives nothing.
    assert not found[np.broadcast_to(~sources.VALID[:, None], found.shape)].any()


@every_attention
def test_steps_with_beams_equal_the_whole(make, width):
    layer = sources.built(make(), rows.WIDTH, width)
    inputs = [ops.convert_to_tensor(x) for x in arguments(layer, width)]
    query, memory, memory_valid, *coverage = inputs
    whole = rows.run(layer, *inputs)
    state = layer.start(rows.BATCH, rows.TIME, memory=memory, memory_valid=memory_valid)
    assert list(state) == ["memory"]
    # The six queries of a row as two steps of three beams of one.
    for t in range(2):
        beams = [
            ops.reshape(x[:, 3 * t : 3 * t + 3], (3 * rows.BATCH, 1, x.shape[2]))
            for x in (query, *coverage)
        ]
        found, same = layer.step(*beams, state=state, cursor=t)
        assert same is state
        found = np.reshape(rows.to_numpy(found), (rows.BATCH, 3, width))
        np.testing.assert_allclose(found, whole[:, 3 * t : 3 * t + 3], atol=1e-6)


@every_attention
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_close(make, width, policy):
    layer = sources.built(make(), rows.WIDTH, width)
    keras.config.set_dtype_policy(policy)
    mixed = make()
    mixed.build((None, None, rows.WIDTH), (None, None, width))
    mixed.set_weights(layer.get_weights())
    inputs = arguments(layer, width)
    weights = rows.run(mixed.attention_weights, *inputs)
    assert weights.dtype == np.float32
    if not isinstance(layer, LocalAttention):  # whose window has an edge
        whole = rows.run(layer.attention_weights, *inputs)
        np.testing.assert_allclose(weights, whole, atol=0.05)
        real = sources.VALID.any(axis=1)
        np.testing.assert_allclose(weights[real].sum(axis=-1), 1.0, atol=1e-6)


def test_two_real_vectors_share_by_hand():
    # Scores 0 and ln 3: weights 1/4 and 3/4.
    query = np.array([[[np.log(3.0), 0.0]]], "float32")
    memory = np.array([[[0.0, 2.0], [1.0, 4.0]]], "float32")
    layer = MultiplicativeAttention()
    valid = np.ones((1, 2), "bool")
    np.testing.assert_allclose(
        rows.run(layer.attention_weights, query, memory, valid), [[[0.25, 0.75]]], atol=1e-6
    )
    np.testing.assert_allclose(rows.run(layer, query, memory, valid), [[[0.75, 3.5]]], atol=1e-6)


def test_the_scale_of_a_normalised_score_starts_at_one_over_the_root():
    layer = AdditiveAttention(16, normalised=True)
    layer.build((None, None, 3), (None, None, 4))
    np.testing.assert_array_equal(layer.get_weights()[1], np.float32(0.25))


def test_a_source_longer_than_the_places_is_named():
    layer = sources.built(LocationAttention(4), rows.WIDTH)
    inputs = [rows.inputs(), sources.memory(), sources.VALID]
    with pytest.raises(ValueError, match="at most max_length=4 real tokens; received 5"):
        rows.run(layer, *inputs)
    # Pads do not count.
    rows.run(layer, *[x[1:] for x in inputs])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdditiveAttention(0), "width=0"),
        (lambda: LocalAttention(0, 3), "window=0"),
        (lambda: LocalAttention(2, -3), "width=-3"),
        (lambda: LocationAttention(2.5), r"max_length=2\.5"),
        (
            lambda: MultiplicativeAttention(name="luong").build((1, 1, 8), (1, 1, 6)),
            "luong without a matrix needs query and memory of one width; received widths 8 and 6",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("covers", [True, False])
def test_coverage_goes_where_it_is_read(covers):
    layer = sources.built(AdditiveAttention(7, coverage=covers, name="bahdanau"), rows.WIDTH)
    inputs = [rows.inputs(), sources.memory(), sources.VALID]
    if not covers:
        inputs.append(rows.normal(rows.BATCH, rows.TIME, sources.LENGTH))
    word = "reads" if covers else "does not read"
    with pytest.raises(ValueError, match=f"bahdanau {word} coverage"):
        rows.run(layer, *inputs)


def test_attention_composes_without_a_decoder():
    query = keras.Input((None, rows.WIDTH))
    memory = keras.Input((None, sources.WIDTH))
    valid = keras.Input((None,), dtype="bool")
    layer = AdditiveAttention(7)
    assert isinstance(layer, ContextAttention)
    model = keras.Model([query, memory, valid], layer(query, memory, valid))
    # Another batch size and another length than at any time before.
    for batch, length in ((2, 4), (5, 9)):
        inputs = [
            rows.normal(batch, 3, rows.WIDTH),
            rows.normal(batch, length, sources.WIDTH),
            np.ones((batch, length), "bool"),
        ]
        assert model.predict(inputs, verbose=0).shape == (batch, 3, sources.WIDTH)
