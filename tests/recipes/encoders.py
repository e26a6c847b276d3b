"""A pretrained encoder for the tests of the recipes that go on from one."""

import keras

import keras_arch as ka
from tests.contracts.tiny import build

SHAPE = {"model": "bert", "width": 8, "layers": 1, "heads": 2, "initializer_range": 0.1}
SHAPE |= {"context": 16, "dropout": 0.0}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sleep", "a", "red"]
PIECES += ["dog", "##der"]


def config():
    shape = {"width": 8, "layers": 1, "heads": 2, "context_length": 16}
    return ka.models.BERTConfig(vocabulary_size=len(PIECES), **shape)


def pretrained(folder):
    """Writes what a pretraining leaves; returns its model, which tells masked tokens."""
    ka.training.RunFolder(folder, SHAPE | {"rate": 0.15}).close()
    (folder / "report.json").write_text("{}")
    ka.text.WordPieceTokenizer(PIECES).save(folder / "tokenizer")
    model = ka.models.masked_lm(build(config()))
    model.save(folder / "model.keras")
    return model


def values(model):
    """Returns the weights by path, without the seeds of dropout."""
    found = {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}
    return {path: value for path, value in found.items() if "seed" not in path}


def small(tmp_path):
    """Returns the settings that every such test has."""
    files = {"data": str(tmp_path / "train.tsv")}
    files |= {"validation_data": str(tmp_path / "validation.tsv")}
    files |= {"initial": str(tmp_path / "initial"), "run_folder": tmp_path / "run"}
    numbers = {"context": 8, "batch_size": 3, "steps": 2, "evaluate_every": 1, "warmup_steps": 1}
    jit = "auto" if keras.backend.backend() == "jax" else "no"
    return files | numbers | {"jit_compile": jit}
