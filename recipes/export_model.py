"""Exports the model and the tokenizer of a run folder as a SavedModel, `export/1` inside it.

    python recipes/export_model.py runs/demo --max-new-tokens 32

A server's SavedModel is exported on the TensorFlow backend, whichever one trained it.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import keras
import tyro

import keras_arch as ka


def export_model(run_folder: tyro.conf.Positional[pathlib.Path], max_new_tokens: int = 32):
    """Exports in this process if it runs TensorFlow, else in one that does.

    Args:
        run_folder: Folder with `model.keras` and `tokenizer/`.
        max_new_tokens: Tokens that the SavedModel writes after a text.

    Raises:
        ValueError: The folder holds no finished training.
    """
    for name in ("model.keras", "tokenizer"):
        if not (run_folder / name).exists():
            raise ValueError(f"run_folder must hold a finished run; {run_folder} has no {name}.")
    if keras.backend.backend() != "tensorflow":
        command = [sys.executable, __file__, str(run_folder), f"--max-new-tokens={max_new_tokens}"]
        subprocess.run(command, check=True, env=os.environ | {"KERAS_BACKEND": "tensorflow"})
        return
    model = keras.saving.load_model(run_folder / "model.keras", compile=False)
    tokenizer = ka.text.load_tokenizer(run_folder / "tokenizer")
    shutil.rmtree(run_folder / "export", ignore_errors=True)
    generation = ka.generation
    ka.serving.export(
        model,
        run_folder / "export",
        tokenizer=tokenizer,
        max_new_tokens=max_new_tokens,
        sampler=generation.Sample(generation.Temperature(0.8), generation.TopP(0.95)),
        bos_id=tokenizer.encode("\n")[0],
    )


if __name__ == "__main__":
    try:
        tyro.cli(export_model, description=__doc__)
    except ValueError as error:
        sys.exit(f"export_model: {error}")
