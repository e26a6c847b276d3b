import numpy as np
import pytest
from keras import ops

from keras_arch.generation.random import row_uniforms, threefry

# Known answers of Threefry-2x32, 20 rounds, from the authors' Random123 distribution.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def _words(pair):
    return [ops.convert_to_tensor(np.array([word], "uint32").view("int32")) for word in pair]


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_threefry_gives_the_known_answers(key, counter, expected):
    result = threefry(_words(key), _words(counter))
    words = [int(ops.convert_to_numpy(word).view("uint32")[0]) for word in result]
    assert words == list(expected)


def _uniforms(seed, rows, step):
    seed = ops.convert_to_tensor(np.array(seed, "int32"))
    return ops.convert_to_numpy(row_uniforms(seed, rows, ops.convert_to_tensor(step, "int32")))


def test_uniforms_are_even_over_the_unit_interval():
    numbers = np.concatenate([_uniforms((7, step), 5000, step) for step in range(4)])
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    counts, _ = np.histogram(numbers, bins=50, range=(0, 1))
    # 49 degrees of freedom: 85.4 is passed once in a thousand.
    assert ((counts - 400) ** 2 / 400).sum() < 85.4


def test_a_rows_numbers_depend_on_seed_row_and_step_alone():
    many, few = _uniforms((1, 2), 8, 3), _uniforms((1, 2), 3, 3)
    np.testing.assert_array_equal(many[:3], few)
    assert len(np.unique(many)) == 8
    assert not np.array_equal(few, _uniforms((1, 2), 3, 4))
    assert not np.array_equal(few, _uniforms((1, 3), 3, 3))
