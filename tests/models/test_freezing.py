import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, build

TOKENS = np.array([[3, 5, 7, 2, 9, 4], [8, 1, 6, 2, 0, 0]], "int32")


def values(model):
    return {v.path: keras.ops.convert_to_numpy(v) for v in model.variables}


def test_what_is_frozen_keeps_its_values():
    model = build(CONFIGS["gpt2"])
    weights = values(model)
    frozen = ka.models.freeze(model, "block_0/*", "*table")
    assert {path.split("/")[0] for path in frozen} == {"block_0", "tokens", "position_table"}
    inputs, targets, weighed = ka.objectives.next_token(TOKENS, TOKENS > 0)
    optimizer, loss = keras.optimizers.Adam(0.05), ka.objectives.TokenCrossentropy()
    model.compile(optimizer, loss, jit_compile=keras.backend.backend() == "jax")
    model.fit(inputs, targets, sample_weight=weighed, epochs=2, verbose=0)
    for path, value in values(model).items():
        assert (path in frozen) == np.array_equal(value, weights[path]), path


@pytest.mark.once
def test_a_pattern_matches():
    with pytest.raises(ValueError, match=r"each match variables; received 'block_9/\*'"):
        ka.models.freeze(build(CONFIGS["gpt2"]), "block_9/*")
    for patterns in ((), (["block_0/*"],)):
        with pytest.raises(ValueError, match=r"patterns must be strings, at least one; received"):
            ka.models.freeze(build(CONFIGS["gpt2"]), *patterns)


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_what_is_trained_goes_through_a_file(policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    first, second = (build(CONFIGS["gpt2"], seed=seed) for seed in (1, 2))
    for model in (first, second):
        ka.models.freeze(model, "[!b]*", "block_0/*")
    trained = [v.path for v in first.trainable_variables]
    assert {path.split("/")[0] for path in trained} == {"block_1"}
    before = values(second)
    ka.models.save_trained(first, tmp_path / "trained.npz")
    with np.load(tmp_path / "trained.npz") as file:
        assert sorted(file) == sorted(trained)
    ka.models.load_trained(second, tmp_path / "trained.npz")
    expected = {path: values(first)[path] if path in trained else before[path] for path in before}
    for path, value in values(second).items():
        np.testing.assert_array_equal(value, expected[path], err_msg=path)


@pytest.mark.once
@pytest.mark.parametrize(
    ("label", "frozen", "message"),
    [
        (
            "gpt2",
            ["tokens/*"],
            r"'gpt2' that are trained; for 'tokens/table' the model has the shape None, the file",
        ),
        (
            "gpt2-untied",
            ["tokens/*"],
            r"for 'block_0/attention/norm/offset' the model has the shape None, the file",
        ),
    ],
)
def test_a_file_of_other_weights_is_refused(label, frozen, message, tmp_path):
    ka.models.save_trained(build(CONFIGS["gpt2"]), tmp_path / "trained.npz")
    model = build(CONFIGS[label])
    ka.models.freeze(model, *frozen)
    before = values(model)
    with pytest.raises(ValueError, match=message):
        ka.models.load_trained(model, tmp_path / "trained.npz")
    for path, value in values(model).items():
        np.testing.assert_array_equal(value, before[path])
