"""Imports go one way, and the core works on each backend without TensorFlow installed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.import_rules import PACKAGE, RULES, faults

pytestmark = pytest.mark.once

PROJECT = Path(__file__).parents[1]
TENSORFLOW = ("tensorflow", "tensorflow_text", "keras_nlp", "keras_hub")


def test_no_file_imports_against_the_rules():
    files = [
        path.relative_to(PROJECT)
        for folder in (PACKAGE, "recipes", "tools", "tests")
        for path in (PROJECT / folder).rglob("*.py")
    ]
    assert Path(PACKAGE, "__init__.py") in files
    found = [fault for path in files for fault in faults((PROJECT / path).read_text(), path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("layers/a.py", "import tensorflow as tf"),
        ("layers/a.py", "def f():\n    import jax"),
        ("layers/a.py", "from keras_arch.models import gpt2"),
        ("layers/a.py", "from ..models import gpt2"),
        ("layers/a.py", "from .. import models"),
        ("layers/__init__.py", "from ..models.gpt2 import gpt2"),
        ("layers/a.py", "import keras_arch as ka"),
        ("layers/a.py", "if keras.config.backend() == 'jax':\n    pass"),
        ("models/a.py", "from keras_arch import generation"),
        ("models/a.py", "from keras.src import ops"),
        ("models/a.py", "keras.src.ops.add(1, 1)"),
        ("models/a.py", "x = backend() in ('jax', 'torch')"),
        ("generation/loop.py", "from keras_arch.serving import export"),
        ("generation/loop.py", "from keras_arch.text import Tokenizer"),
        ("objectives/a.py", "from keras_arch.layers import Rotary"),
        ("analysis/a.py", "import matplotlib.pyplot as plt"),
        ("serving/a.py", "from recipes import train_gpt"),
        ("training/a.py", "from tests.references import attention"),
        ("training/a.py", "import tools"),
        ("backend.py", "import tensorflow as tf"),
        ("backend.py", "from keras_arch.layers import Rotary"),
        ("unheard_of/a.py", "import keras"),
    ],
)
def test_a_wrong_import_is_found(path, source):
    assert len(faults(source, Path(PACKAGE, path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("__init__.py", "from keras_arch import layers, models"),
        ("layers/a.py", "import math\nimport keras\nimport numpy as np\nfrom keras import ops"),
        ("layers/a.py", "from .rotary import Rotary\nfrom keras_arch.layers.rotary import Rotary"),
        ("layers/__init__.py", "from .rotary import Rotary"),
        ("models/a.py", "from ..layers import Rotary\nfrom keras_arch.backend import compiled"),
        ("serving/a.py", "import tensorflow as tf\nfrom keras_arch.generation import Stepper"),
        ("backend.py", "def compiled(f):\n    import jax\n    return jax.jit(f)"),
    ],
)
def test_a_right_import_passes(path, source):
    assert faults(source, Path(PACKAGE, path)) == []


def test_every_part_has_a_rule():
    parts = {path.stem for path in (PROJECT / PACKAGE).iterdir() if (path / "__init__.py").exists()}
    assert parts <= RULES.keys()


def run_alone(backend, source):
    """What the source, run in a process of its own, prints as JSON on its last line."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=PROJECT,
        env={**os.environ, "KERAS_BACKEND": backend},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# As if these packages were not installed: looking one of them up finds nothing.
HIDE = f"""
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {TENSORFLOW!r}:
            return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""

USE = """
import json
import numpy as np
import keras_arch as ka
model = ka.models.gpt2(
    ka.models.GPT2Config(vocabulary_size=11, width=8, layers=1, heads=2, context_length=8)
)
token_ids = np.array([[1, 2, 3]], "int32")
logits = model({"token_ids": token_ids, "valid": np.ones_like(token_ids, bool)})
generated = ka.generate(model, [[1, 2, 3]], max_new_tokens=2)
print(json.dumps([list(logits.shape), np.asarray(generated.token_ids).shape]))
"""

NEW_PACKAGES = """
import json, sys
import keras
packages = lambda: {name.partition(".")[0] for name in sys.modules}
before = packages()
import keras_arch
print(json.dumps(sorted(packages() - before)))
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_core_works_without_tensorflow(backend):
    assert run_alone(backend, HIDE + USE) == [[1, 3, 11], [1, 2]]


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_importing_adds_nothing_heavy(backend):
    added = set(run_alone(backend, NEW_PACKAGES))
    assert "keras_arch" in added
    assert added.isdisjoint({*TENSORFLOW, "torch", "matplotlib", "tokenizers"})
