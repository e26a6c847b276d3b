"""Loading a checkpoint as a model of ours."""

import dataclasses
import functools
from typing import Any, NamedTuple

import keras

from keras_arch.checkpoints.classes import read_labels
from keras_arch.checkpoints.families import family_named
from keras_arch.checkpoints.fields import Fields
from keras_arch.checkpoints.matching import check_repeats, match
from keras_arch.checkpoints.tensor_files import TensorFiles, find_files, read_object
from keras_arch.models import outline


class Report(NamedTuple):
    """What became of a checkpoint; printed, one line each.

    Attributes:
        family: The `model_type`.
        read: Our weights' paths -> names of the tensors they were made of.
        ignored: Names of the tensors that were not needed -> why.
        fields: The fields of `config.json` that change nothing of what the model computes.
        labels: Names of the classes, of a head that has some.
    """

    family: str
    read: dict
    ignored: dict
    fields: dict
    labels: tuple = ()

    def __str__(self):
        lines = [f"{path} <- {', '.join(names)}" for path, names in self.read.items()]
        lines += [f"not read: {name} ({reason})" for name, reason in self.ignored.items()]
        lines += [f"not used: {name}={value!r}" for name, value in self.fields.items()]
        if self.labels:
            lines.append(f"classes: {', '.join(self.labels)}")
        return "\n".join([f"{self.family}: {len(self.read)} weights", *lines])


class Loaded(NamedTuple):
    """A checkpoint that was read.

    Attributes:
        model: The functional model, with the weights.
        config: Its config.
        report: A `Report`.
    """

    model: keras.Model
    config: Any
    report: Report


def load(source, family=None, dropout=0.0, ignore_fields=(), head=None):
    """Returns the model of a Hugging Face checkpoint; see `read`."""
    return read(source, family, dropout, ignore_fields, head).model


def read(source, family=None, dropout=0.0, ignore_fields=(), head=None):
    """Reads a Hugging Face checkpoint into a model of ours.

    One tensor after the other is read from the disk, when all of them have their place. Weights get
    the type of Keras's dtype policy, whatever the file's.

    Args:
        source: Folder with `config.json` and `model.safetensors` (or its shards and index); or the
            safetensors file(s), with `config.json` beside.
        family: A `model_type`; default that of `config.json`.
        dropout: Rate of the model's dropout, and of that before classes. The file's own rates are
            not read: they stand in places that differ between the families.
        ignore_fields: Names of fields of `config.json` that are not known here, to go on without.
        head: Of an encoder, the name of the function in `keras_arch.models` that puts on the head
            to read, such as "masked_lm"; None: the encoder alone, with its pooler.

    Returns:
        A `Loaded`.

    Raises:
        ValueError: If the config asks for what our layers do not compute, a file is damaged or
            pickled, or a tensor is missing, unexpected, or of another shape; names all of them.
        ImportError: If safetensors is not installed.
    """
    config_file, paths = find_files(source)
    files = TensorFiles(paths)
    fields = Fields(read_object(config_file), ignore_fields)
    family = family_named(fields.get("model_type") if family is None else family, head)
    config = dataclasses.replace(family.read(fields), dropout=dropout)
    labels, build = (), family.build
    if family.classifies:
        labels = read_labels(fields)
        build = functools.partial(build, classes=len(labels), dropout=dropout)
    harmless = fields.harmless()
    shapes = {weight.path: tuple(weight.shape) for weight in outline(config, build).weights}
    matched = match(family, config, files, shapes)
    check_repeats(matched, files)
    model = build(config)

    def read_named(name):
        return files.read(matched.names[name])

    for weight in model.weights:
        weight.assign(matched.rows[weight.path].join(read_named, shapes[weight.path]))
    made = {
        path: tuple(matched.names[name] for name in matched.rows[path].tensors) for path in shapes
    }
    report = Report(family.model_type, made, matched.ignored, harmless, labels)
    return Loaded(model, config, report)
