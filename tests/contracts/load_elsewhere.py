"""Run on another backend by a contract test: loads each saved model and compares its logits."""

import sys
from pathlib import Path

import keras
import numpy as np

import keras_arch  # noqa: F401  registers the layers
from tests.contracts.tiny import CONFIGS, logits

folder = Path(sys.argv[1])
token_ids = np.load(folder / "token_ids.npy")
for label in CONFIGS:
    model = keras.saving.load_model(folder / f"{label}.keras")
    expected = np.load(folder / f"{label}.npy")
    np.testing.assert_allclose(
        logits(model, token_ids), expected, rtol=0, atol=1e-5, err_msg=f"{label} differs"
    )
