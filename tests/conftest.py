"""What every test gets."""

import gc
import itertools
import os

# Most of the suite's time is XLA's, compiling programs that run once: it leaves out what makes them
# fast. A third of the time, on TensorFlow and on JAX.
CHEAP = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["XLA_FLAGS"] = " ".join(filter(None, [os.environ.get("XLA_FLAGS"), CHEAP]))

import keras  # noqa: E402 (XLA reads its flags once)
import pytest  # noqa: E402


def pytest_collection_modifyitems(config, items):
    """Leaves to the run on TensorFlow what does not depend on Keras's backend."""
    if keras.backend.backend() != "tensorflow":
        left = [item for item in items if item.get_closest_marker("once")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("once")]


FILES = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def frozen():
    """Keeps what earlier files left out of later collections of garbage.

    Keras collects whenever a layer loses a weight, and compiled programs are millions of objects.
    What has become garbage since is let go after some files.
    """
    if next(FILES) % 8 == 7:
        gc.unfreeze()
    gc.collect()
    gc.freeze()


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
