"""How an export becomes a version's folder: whole, of operations servers have, or not at all."""

import os
import shutil
from pathlib import Path

import keras
import tensorflow as tf

from keras_arch.checks import check_positive
from keras_arch.serving.operations import foreign_operations


def new_version(path, version):
    """Returns the folder `path/version`, which must not be there yet.

    Raises:
        ValueError: If the version is no positive integer, or the path leads through a file.
        FileExistsError: If the version exists: servers take a version as final.
        RuntimeError: If Keras runs on another backend than TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "export needs Keras on TensorFlow; received the backend "
            f"{keras.backend.backend()!r}. Save the model as a .keras file and export that by "
            "tools/export, or in a process with KERAS_BACKEND=tensorflow."
        )
    check_positive(version=version)
    folder = Path(path) / str(version)
    if folder.exists():
        raise FileExistsError(f"version {version} exists already: {folder}. Give a new version=.")
    file = next((part for part in folder.parents if part.is_file()), None)
    if file is not None:
        raise ValueError(f"path must be a folder; received path={str(path)!r}, {file} is a file.")
    return folder


def save(module, folder):
    """Saves the module as a whole or not at all: a server never sees half a version.

    Raises:
        ValueError: If it runs an operation that servers may lack. No folder is left.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        # Nobody trains what is served: its gradients would take half of the time.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, str(partial), module.signatures(), options)
        foreign = foreign_operations(partial)
        if foreign:
            raise ValueError(
                "the model must run on operations of TensorFlow's core and tensorflow_text; "
                f"received one with {', '.join(foreign)}, which servers may lack."
            )
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
