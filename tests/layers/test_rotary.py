import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    Rotary,
    YarnScaling,
)
from keras_arch.layers.rotary import LAYOUTS
from tests.layers import rows
from tests.references import rotary as reference

HEADS, HEAD_WIDTH = 2, 8
BASE = 10000.0


def turn(layer, x, positions, length=None):
    return rows.run(layer, x, positions, length)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("half_split", [0.5403, 0, 0.8415, 0]), ("interleaved", [0.5403, 0.8415, 0, 0])],
)
def test_turns_the_first_pair_by_one_radian(layout, expected):
    x = np.array([1, 0, 0, 0], "float32").reshape(1, 1, 1, 4)
    y = turn(Rotary(layout=layout), x, np.array([[1]], "int32"))
    np.testing.assert_allclose(y[0, 0, 0], expected, atol=5e-5)


def test_the_layouts_are_a_permutation_of_each_other():
    x = rows.normal(rows.BATCH, HEADS, rows.TIME, HEAD_WIDTH)
    interleaved = turn(Rotary(layout="interleaved"), x, rows.POSITIONS)
    # Even columns first, then odd: pairs (2i, 2i + 1) become (i, i + H/2).
    order = [*range(0, HEAD_WIDTH, 2), *range(1, HEAD_WIDTH, 2)]
    half_split = turn(Rotary(layout="half_split"), x[..., order], rows.POSITIONS)
    np.testing.assert_allclose(half_split, interleaved[..., order], atol=1e-6)


def ntk(length):
    return reference.dynamic_ntk(HEAD_WIDTH, BASE, 2.0, 4, length)


SCALINGS = {
    "none": (None, lambda length: reference.frequencies(HEAD_WIDTH, BASE), 1.0),
    "linear": (LinearScaling(4.0), lambda length: reference.linear(HEAD_WIDTH, BASE, 4.0), 1.0),
    "dynamic_ntk": (DynamicNTKScaling(2.0, 4), ntk, 1.0),
    "yarn": (
        YarnScaling(4.0, 64, beta_fast=8.0),
        lambda length: reference.yarn(HEAD_WIDTH, BASE, 4.0, 64, 8.0),
        reference.yarn_magnitude(4.0),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_equals_the_reference(layout, scaling):
    scaling, frequencies, magnitude = SCALINGS[scaling]
    x = rows.normal(rows.BATCH, HEADS, rows.TIME, HEAD_WIDTH)
    length = rows.POSITIONS.max(axis=1) + 1
    y = turn(Rotary(BASE, layout, scaling), x, rows.POSITIONS, length)
    expected = np.zeros(x.shape)
    for b, n, t in np.ndindex(*x.shape[:3]):
        expected[b, n, t] = reference.rotate(
            x[b, n, t], rows.POSITIONS[b, t], frequencies(length[b]), layout, magnitude
        )
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_the_product_of_query_and_key_depends_on_their_distance_only():
    query, key = rows.normal(1, 1, 1, HEAD_WIDTH), rows.normal(1, 1, 1, HEAD_WIDTH, seed=1)

    def product(query_position, key_position):
        turned = [
            turn(Rotary(), x, np.array([[position]], "int32"))
            for x, position in [(query, query_position), (key, key_position)]
        ]
        return (turned[0] * turned[1]).sum()

    np.testing.assert_allclose(product(9, 4), product(105, 100), atol=1e-4)
    assert abs(product(9, 4) - product(9, 5)) > 1e-2


@pytest.mark.parametrize("base", [10000.0, 500000.0])
@pytest.mark.parametrize("head_width", [8, 128])
@pytest.mark.parametrize("factor", [1.0, 8.0])
def test_frequencies_of_every_scaling(head_width, base, factor):
    close = {"rtol": 2e-5}
    expected = reference.linear(head_width, base, factor)
    np.testing.assert_allclose(
        LinearScaling(factor).frequencies(head_width, base, None), expected, **close
    )
    expected = reference.yarn(head_width, base, factor, 2048)
    np.testing.assert_allclose(
        YarnScaling(factor, 2048).frequencies(head_width, base, None), expected, **close
    )
    expected = reference.llama3(head_width, base, factor, 8192)
    np.testing.assert_allclose(
        Llama3Scaling(factor, 8192).frequencies(head_width, base, None), expected, **close
    )
    lengths = np.array([1, 100, 101, 400], "int32")
    expected = [reference.dynamic_ntk(head_width, base, factor, 100, n) for n in lengths.tolist()]
    found = DynamicNTKScaling(factor, 100).frequencies(
        head_width, base, ops.convert_to_tensor(lengths)
    )
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, **close)


def test_yarn_ramps_over_the_published_columns():
    # LLaMA 2: the ramp goes from column 20 to 46 (of 64), as its authors' code prints.
    found = YarnScaling(16.0, 4096).frequencies(128, 10000.0, None)
    plain = np.array(reference.frequencies(128, 10000.0))
    ratio = found / plain
    np.testing.assert_allclose(ratio[:21], 1.0)
    assert (np.diff(ratio[20:47]) < 0).all()
    np.testing.assert_allclose(ratio[46:], 1 / 16)


def test_dynamic_ntk_is_the_identity_within_the_trained_context():
    x = rows.normal(rows.BATCH, HEADS, rows.TIME, HEAD_WIDTH)
    length = np.full(rows.BATCH, rows.TIME, "int32")
    scaled = turn(Rotary(scaling=DynamicNTKScaling(4.0, 6)), x, rows.POSITIONS, length)
    np.testing.assert_allclose(scaled, turn(Rotary(), x, rows.POSITIONS), atol=1e-6)


def test_angles_are_float32_in_bfloat16():
    # bfloat16 has no number between 4096 and 4128.
    layer = Rotary(dtype="mixed_bfloat16")
    positions = np.array([[4096, 4097]], "int32")
    x = np.ones((1, 1, 2, HEAD_WIDTH), "float32")
    y = layer(ops.cast(x, "bfloat16"), ops.convert_to_tensor(positions))
    assert keras.backend.standardize_dtype(y.dtype) == "bfloat16"
    y = rows.to_numpy(y)[0, 0]
    frequencies = reference.frequencies(HEAD_WIDTH, BASE)
    for t in range(2):
        expected = reference.rotate(x[0, 0, t], positions[0, t], frequencies, "half_split")
        np.testing.assert_allclose(y[t], expected, atol=1e-2)
    assert abs(y[0] - y[1]).max() > 0.1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rotary(layout="split"), "layout='split'"),
        (lambda: Rotary(base=1.0), "base=1.0"),
        (lambda: LinearScaling(0.5), "factor=0.5"),
        (lambda: DynamicNTKScaling(2.0, 0), "context_length=0"),
        (lambda: DynamicNTKScaling(0.0, 8), "factor=0.0"),
        (lambda: YarnScaling(2.0, -4), "context_length=-4"),
        (lambda: Llama3Scaling(2.0, 0), "context_length=0"),
        (lambda: Llama3Scaling(2.0, 64, 4.0, 4.0), "high_turns=4.0, low_turns=4.0"),
        (lambda: YarnScaling(2.0, 64, beta_fast=1.0, beta_slow=2.0), "beta_fast=1.0, beta_slow=2"),
    ],
)
def test_names_the_bad_argument(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_refuses_an_odd_head_width():
    with pytest.raises(ValueError, match="head_width=3"):
        turn(Rotary(), np.zeros((1, 1, 2, 3), "float32"), np.array([[0, 1]], "int32"))
