"""An encoder to go on from: of a run of pretrain_encoder.py, or of a Hugging Face folder."""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import keras
from parts.encoder import EncoderSettings

import keras_arch as ka
from keras_arch.text.files import read_json
from keras_arch.text.read import FILES as TOKENIZER_FILES


class Initial(NamedTuple):
    """What a fine-tuning begins with.

    Attributes:
        config: Of the encoder.
        model: The encoder, maybe with a head.
        tokenizer: Its tokenizer.
        files: Paths of all files it was read from.
    """

    config: Any
    model: keras.Model
    tokenizer: Any
    files: list


def read_initial(folder):
    """Returns the `Initial` of a folder.

    Raises:
        ValueError: If it holds neither a finished run of pretrain_encoder.py nor a checkpoint of an
            encoder with its vocabulary.
    """
    folder = pathlib.Path(folder)
    if (folder / "report.json").exists():
        return _of_run(folder)
    if (folder / "config.json").exists():
        return _of_checkpoint(folder)
    raise ValueError(
        "initial must be a finished run of pretrain_encoder.py or a Hugging Face folder; received "
        f"initial={str(folder)!r}, which has neither report.json nor config.json."
    )


def _of_run(folder):
    asked = read_json(folder / "settings.json").get("settings")
    names = [field.name for field in dataclasses.fields(EncoderSettings)]
    if not isinstance(asked, dict):
        raise ValueError(
            f"{folder / 'settings.json'} must hold an object under settings; received {asked!r}."
        )
    if not asked.keys() >= {*names}:
        raise ValueError(
            "initial must be a run of pretrain_encoder.py; received one whose settings.json has no "
            f"{sorted({*names} - asked.keys())}, initial={str(folder)!r}."
        )
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    shape = EncoderSettings(**{name: asked[name] for name in names})
    file = folder / "model.keras"
    model = keras.saving.load_model(file, compile=False)
    files = [file, *sorted(p for p in (folder / "tokenizer").iterdir() if p.is_file())]
    return Initial(shape.config(tokenizer.vocabulary_size), model, tokenizer, files)


def _of_checkpoint(folder):
    # Files of pretrained models often have no pooler; a classifier trains a new one.
    loaded = ka.checkpoints.read(folder, head="token_vectors")
    tokenizer = ka.text.read_tokenizer(folder, loaded.config.vocabulary_size)
    files = [folder / name for name in (*TOKENIZER_FILES, "config.json")]
    files = [file for file in files if file.exists()] + sorted(folder.glob("*.safetensors"))
    return Initial(loaded.config, loaded.model, tokenizer, files)


def copy_weights(source, target, new):
    """Gives a model the weights of another whose encoder has the same layers.

    The target's table of positions may be shorter.

    Args:
        source: The model to copy from.
        target: The model to copy to.
        new: Names of the target's layers that keep their own weights.

    Raises:
        ValueError: If the source lacks a weight, or has one of another shape.
    """
    values = {weight.path: weight for weight in source.weights}
    for weight in target.weights:
        layer, _, name = weight.path.partition("/")
        if layer in new or name.endswith("seed_generator_state"):
            continue
        if weight.path not in values:
            raise ValueError(
                f"initial must have all layers of the encoder; it has no {weight.path}."
            )
        value = keras.ops.convert_to_numpy(values[weight.path])
        weight.assign(value[: weight.shape[0]] if layer == "position_table" else value)
