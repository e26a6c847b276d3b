"""Checkpoints that a kill at any moment cannot spoil."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import warnings

import keras

from keras_arch.training import files
from keras_arch.training.progress import Progress

WEIGHTS = "model.weights.h5"
STATE = "progress.json"


class Checkpoints:
    """Numbered checkpoints of one training: variables and progress.

    A checkpoint is a folder `step-00000250` with `model.weights.h5` (weights, optimizer moments,
    loss scale) and `progress.json` (Progress, dropout seeds, a SHA-256 over all of it). It is
    written under another name and renamed when complete. Numbers and text only: loading one
    never runs code.

    Args:
        folder: where they live.
        keep: how many of the newest to keep, besides the one with the best validation loss.

    Raises:
        ValueError: `keep` is not positive.
    """

    def __init__(self, folder, keep=2):
        if keep < 1:
            raise ValueError(f"keep must be positive; received keep={keep}.")
        self.folder = pathlib.Path(folder)
        self.keep = keep

    def paths(self):
        """Returns the checkpoint folders, oldest first."""
        return sorted(self.folder.glob("step-*"))

    def path(self, step):
        """Returns the folder of the checkpoint after `step` updates."""
        return self.folder / f"step-{step:08d}"

    def save(self, model, progress):
        """Writes a checkpoint in one step and removes those no longer kept."""
        path = self.path(progress.step)
        temporary = self.folder / f".writing-{path.name}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        model.save_weights(temporary / WEIGHTS)
        files.sync(temporary / WEIGHTS)
        state = {"progress": dataclasses.asdict(progress), "seeds": read_seeds(model)}
        state["sha256"] = digest(temporary / WEIGHTS, state)
        files.write_text(temporary / STATE, json.dumps(state))
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
        files.sync(self.folder)
        self.remove_old(progress)

    def remove_old(self, progress):
        """Removes checkpoints that are neither among the newest nor the best."""
        kept = set(self.paths()[-self.keep :])
        if progress.evaluations():
            kept.add(self.path(progress.best()["step"]))
        for path in set(self.paths()) - kept:
            shutil.rmtree(path)

    def restore(self, model):
        """Loads the newest intact checkpoint into a compiled model.

        Returns:
            Its Progress; a fresh one when there is no checkpoint at all. A damaged checkpoint is
            passed over with a warning.

        Raises:
            ValueError: all checkpoints are damaged, or an intact one does not fit the model.
        """
        paths = self.paths()
        for path in reversed(paths):
            state = read(path)
            if state is not None:
                load_variables(model, path / WEIGHTS, state["seeds"])
                return Progress(**state["progress"])
            warnings.warn(f"checkpoint {path} is damaged; trying the one before.", stacklevel=2)
        if paths:
            raise ValueError(
                f"all checkpoints in {self.folder} are damaged: "
                f"{', '.join(path.name for path in paths)}. Remove them to start again."
            )
        return Progress()

    def load_best(self, model, progress):
        """Loads the checkpoint with the lowest validation loss and returns its log row.

        Raises:
            ValueError: that checkpoint is damaged or missing.
        """
        row = progress.best()
        path = self.path(row["step"])
        state = read(path)
        if state is None:
            raise ValueError(f"the best checkpoint {path} is damaged or missing.")
        load_variables(model, path / WEIGHTS, state["seeds"])
        return row


def read(path):
    """Returns the state of an intact checkpoint, None for a damaged or missing one."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        intact = state.pop("sha256") == digest(path / WEIGHTS, state)
        return state if intact else None
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def digest(weights, state):
    """Returns the hexadecimal SHA-256 of a weights file and the state beside it."""
    with open(weights, "rb") as file:
        found = hashlib.file_digest(file, "sha256")
    found.update(json.dumps(state, sort_keys=True).encode())
    return found.hexdigest()


def load_variables(model, path, seeds):
    """Loads weights, optimizer and seeds; raises ValueError where Keras would only warn."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            model.load_weights(path)
        for variable, seed in zip(seed_variables(model), seeds, strict=True):
            variable.assign(seed)
    except (UserWarning, ValueError) as error:
        raise ValueError(f"{path} does not fit this model and optimizer: {error}") from error


def seed_variables(model):
    """Returns the states of the random generators, which Keras leaves out of weight files."""
    return [v for v in model.variables if v.name == "seed_generator_state"]


def read_seeds(model):
    """Returns the random generators' states as lists of integers."""
    return [keras.ops.convert_to_numpy(v.value).tolist() for v in seed_variables(model)]


class SaveCheckpoint(keras.callbacks.Callback):
    """Saves at the end of each evaluation interval, after the callbacks listed before it."""

    def __init__(self, checkpoints, progress):
        super().__init__()
        self.checkpoints = checkpoints
        self.progress = progress

    def on_epoch_end(self, epoch, logs=None):
        self.progress.stopped = bool(self.model.stop_training)
        self.checkpoints.save(self.model, self.progress)
