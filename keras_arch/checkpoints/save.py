"""Saving a model of ours as a checkpoint of Hugging Face's."""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import tempfile

import keras

from keras_arch.checkpoints.classes import default_labels, head_options, written_labels
from keras_arch.checkpoints.families import FAMILIES, families_named
from keras_arch.checkpoints.fields import Fields
from keras_arch.checkpoints.recover import recovered
from keras_arch.checkpoints.shards import shards_of, write_shards
from keras_arch.checkpoints.table import without_prefix
from keras_arch.checkpoints.tensor_files import CONFIG, INDEX
from keras_arch.checks import check_positive

#: Fields of our configs that a trained model's outputs do not depend on.
_TRAINING = {"dropout", "initializer_range"}


def save(model, folder, family=None, fields=None, shard_bytes=5_000_000_000, labels=None):
    """Writes `config.json` and `model.safetensors`, which `transformers` loads.

    The config is read back from the model's layers, so a model from a `.keras` file will do. One
    weight after the other is taken from the model, in its own precision.

    Args:
        model: A functional model of a builder in `keras_arch.models`, trained or not.
        folder: Made if there is none; may not hold a checkpoint.
        family: A `model_type`; default the first that can express the model.
        fields: More entries of `config.json`, such as `{"eos_token_id": 2}`.
        shard_bytes: Size from which another file is begun; several have an index.
        labels: Names of the classes, where the head has some; default "LABEL_0", ...

    Raises:
        ValueError: If the model is not as its builder wires it, no family can express it, it is
            quantised, an entry of `fields` belongs to the architecture, the folder holds a
            checkpoint, or there are not as many labels as classes.
    """
    check_positive(shard_bytes=shard_bytes)
    folder = pathlib.Path(folder)
    held = [path.name for path in (folder / CONFIG, folder / INDEX) if path.exists()]
    held += sorted(path.name for path in folder.glob("*.safetensors"))
    if held:
        raise ValueError(f"folder must hold no checkpoint; {folder} has {', '.join(held)}.")
    family, config, own = _expressed(model, family)
    weights = {weight.path: weight for weight in model.weights}
    rows = family.rows(config)
    if family.bare:
        rows = without_prefix(rows, family.prefix)
    shards = shards_of(rows, weights, shard_bytes)
    own |= _of_classes(model, family, labels)
    own |= {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "dtype": keras.backend.standardize_dtype(model.weights[0].dtype),
    }
    taken = own.keys() & (fields or {}).keys()
    if taken:
        raise ValueError(f"fields may not hold what the model itself says: {sorted(taken)}.")
    with _filling(folder) as temporary:
        write_shards(temporary, shards, weights)
        text = json.dumps({**own, **(fields or {})}, indent=2, sort_keys=True) + "\n"
        (temporary / CONFIG).write_text(text, encoding="utf-8")


def _of_classes(model, family, labels):
    """Returns the fields of `config.json` of a head with classes; {} of any other."""
    options = head_options(model) if family.classifies else {"classes": 0}
    if labels is not None and len(labels) != options["classes"]:
        raise ValueError(
            f"labels must name the head's {options['classes']} classes; received labels={labels!r}."
        )
    if not family.classifies:
        return {}
    rate = {family.class_dropout: options["dropout"]} if family.class_dropout else {}
    return rate | written_labels(labels or default_labels(options["classes"]))


def _expressed(model, name):
    """Returns the family, our config and the fields of `config.json`."""
    names, refusals = FAMILIES if name is None else [name], []
    families = (family for name in names for family in families_named(name).values())
    for family in families:
        if family.model_name != model.name:
            continue
        config = recovered(model, family)
        fields = family.write(config)
        again = family.read(Fields(fields))
        lost = [
            f"{field.name}={getattr(config, field.name)!r}"
            for field in dataclasses.fields(config)
            if getattr(config, field.name) != getattr(again, field.name)
            and field.name not in _TRAINING
        ]
        if not lost:
            return family, config, fields
        refusals.append(f"{family.model_type} cannot express {', '.join(lost)}")
    raise ValueError(
        f"model must be one that a family of checkpoints can express; received {model.name}: "
        f"{'; '.join(refusals) or f'none of {list(names)} is of this kind'}."
    )


@contextlib.contextmanager
def _filling(folder):
    """Yields a folder beside; its files go into `folder` when all are written, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        folder.mkdir(exist_ok=True)
        # The config last: without it a folder is no checkpoint.
        for path in sorted(temporary.iterdir(), key=lambda path: path.name == CONFIG):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(temporary)
