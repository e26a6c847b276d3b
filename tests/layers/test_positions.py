import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import LearnedPositions, SinusoidalPositions, TokenPositions
from tests.layers import rows
from tests.references import positions as reference


@pytest.mark.parametrize("segment_ids", [None, rows.SEGMENTS])
def test_counts_the_real_tokens_before(segment_ids):
    expected = reference.token_positions(rows.VALID, segment_ids)
    found = rows.run(TokenPositions(), rows.VALID, segment_ids)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32


def test_left_and_right_pads_give_the_same_positions():
    valid = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], "bool")
    found = rows.run(TokenPositions(), valid)
    np.testing.assert_array_equal(found[valid].reshape(2, 4), [[0, 1, 2, 3]] * 2)


@pytest.mark.parametrize("chunks", rows.CHUNKS)
@pytest.mark.parametrize("segment_ids", [None, rows.SEGMENTS])
def test_steps_equal_the_call(chunks, segment_ids):
    expected = reference.token_positions(rows.VALID, segment_ids)
    outputs = rows.step_through(TokenPositions(), chunks, rows.VALID, segment_ids)
    np.testing.assert_array_equal(np.concatenate(outputs, axis=1), expected)


def test_forgotten_tokens_are_counted_no_more():
    layer, ones = TokenPositions(), ops.ones((2, 3), "bool")
    _, state = layer.step(ones, state=layer.start(2, 8), cursor=0)
    dropped = ops.convert_to_tensor(np.array([[False, True, True], [False] * 3]))
    found, _ = layer.step(ones, state=layer.rewind(state, dropped), cursor=1)
    np.testing.assert_array_equal(rows.to_numpy(found), [[1, 2, 3], [3, 4, 5]])


def test_looks_up_the_learned_table():
    for offset in (0, 2):
        layer = LearnedPositions(rows.TIME, rows.WIDTH, offset=offset)
        layer.build((None, None))
        rows.randomize(layer)
        table = layer.get_weights()[0]
        assert table.shape == (offset + rows.TIME, rows.WIDTH)
        found = rows.run(layer, rows.POSITIONS)
        np.testing.assert_array_equal(found, table[offset:][rows.POSITIONS])


@pytest.mark.parametrize("base", [10000.0, 50.0])
def test_sinusoids_equal_the_reference(base):
    found = rows.run(SinusoidalPositions(rows.WIDTH, base), rows.POSITIONS)
    expected = reference.sinusoidal(rows.POSITIONS, rows.WIDTH, base)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sines_may_come_before_all_cosines():
    found = rows.run(SinusoidalPositions(rows.WIDTH, layout="half_split"), rows.POSITIONS)
    expected = reference.half_split(reference.sinusoidal(rows.POSITIONS, rows.WIDTH))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sinusoids_are_computed_in_float32():
    layer = SinusoidalPositions(rows.WIDTH, dtype="mixed_bfloat16")
    positions = np.array([[4096, 4097]], "int32")
    found = rows.run(layer, positions)
    expected = reference.sinusoidal(positions, rows.WIDTH)
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert abs(found[0, 0] - found[0, 1]).max() > 0.1


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (TokenPositions(4), np.ones((2, 5), "bool")),
        (LearnedPositions(4, 8), np.zeros((2, 5), "int32")),
    ],
)
def test_refuses_more_tokens_than_context(layer, x):
    with pytest.raises(ValueError, match="length=5, context_length=4"):
        rows.run(layer, x)
    spec = keras.KerasTensor(x.shape, keras.backend.standardize_dtype(x.dtype))
    with pytest.raises(ValueError, match="length=5, context_length=4"):
        layer(spec)


def test_takes_exactly_the_context():
    assert rows.run(TokenPositions(6), rows.VALID).shape == rows.VALID.shape


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TokenPositions(0), "context_length=0"),
        (lambda: LearnedPositions(-3, 8), "context_length=-3"),
        (lambda: LearnedPositions(8, 0), "width=0"),
        (lambda: LearnedPositions(8, 2.0), "width=2.0"),
        (lambda: LearnedPositions(8, 4, offset=-2), "offset=-2"),
        (lambda: SinusoidalPositions(7), "width=7"),
        (lambda: SinusoidalPositions(0), "width=0"),
        (lambda: SinusoidalPositions(8, layout="halves"), "layout='halves'"),
    ],
)
def test_names_the_bad_argument(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_output_specs_tell_shape_and_type():
    valid = keras.KerasTensor((None, 6), "bool")
    positions = TokenPositions()(valid)
    assert (positions.shape, positions.dtype) == ((None, 6), "int32")
    for layer in (LearnedPositions(8, 4), SinusoidalPositions(4)):
        vectors = layer(positions)
        assert vectors.shape == (None, 6, 4)
        assert vectors.dtype == "float32"
        assert ops.shape(layer(ops.zeros((2, 6), "int32"))) == (2, 6, 4)
