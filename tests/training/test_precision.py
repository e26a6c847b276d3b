import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.training import AdamW, precision
from tests.training import tiny


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_trains_in_this_precision(name):
    with precision(name):
        model = tiny.model()
    assert {layer.compute_dtype for layer in model.layers if layer.count_params()} == {name}
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
    model.compile(AdamW(0.01), ka.objectives.TokenCrossentropy(), jit_compile=False)
    scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (name == "float16")
    before = tiny.variables(model)
    history = model.fit(tiny.dataset(), steps_per_epoch=2, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert any(not np.array_equal(a, b) for a, b in zip(before, tiny.variables(model), strict=True))
    assert all(np.isfinite(v).all() for v in tiny.variables(model))


def test_the_policy_ends_with_the_block():
    def fail():
        with precision("bfloat16"):
            assert keras.config.dtype_policy().name == "mixed_bfloat16"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert keras.config.dtype_policy().name == "float32"


def test_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="float8"), precision("float8"):
        pass
