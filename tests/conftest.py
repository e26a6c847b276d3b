"""What every test gets."""

import keras
import pytest


@pytest.fixture(autouse=True)
def seed():
    """Seeds Python, NumPy and the backend, so that no test depends on those before it."""
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def dtype_policy():
    """Undoes a test's `keras.config.set_dtype_policy`."""
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
