"""Exports a trained model and its tokenizer as a SavedModel for TensorFlow Serving.

    python recipes/export_model.py runs/demo --max-new-tokens 32
    python recipes/export_model.py my.keras --tokenizer my_tokenizer --output served/mine
    python recipes/export_model.py runs/translation --beams 5
    python recipes/export_model.py runs/spam  # an encoder; labels.txt names the classes

A SavedModel is written on the TensorFlow backend, whichever one trained the model.
"""

import os
import pathlib
import subprocess
import sys

import keras
import tyro

import keras_arch as ka
from keras_arch.serving.encoder_heads import head_of


def export_model(
    source: tyro.conf.Positional[pathlib.Path],
    tokenizer: pathlib.Path | None = None,
    output: pathlib.Path | None = None,
    max_new_tokens: int = 32,
    temperature: float = 0.8,
    top_p: float = 0.95,
    beams: int = 0,
    length_penalty: float = 1.0,
    labels: pathlib.Path | None = None,
    between: int = 1,
    source_begin: tuple[int, ...] = (),
    source_end: tuple[int, ...] = (),
):
    """Exports in this process if it runs TensorFlow, else in one that does.

    Args:
        source: A run folder, with `model.keras` and `tokenizer/`; or a `.keras` file. A
            `source_tokenizer/` beside the file reads the sources of a translator.
        tokenizer: The tokenizer's folder; default the one beside the `.keras` file.
        output: The model folder, which gets a new version; default `export` beside the file.
        max_new_tokens: Most tokens that the SavedModel writes after a text.
        temperature: What the logits are divided by; a request may ask for another.
        top_p: Probability that the tokens to choose from hold together.
        beams: Largest width of beam search, by which a text is answered unless sampling is asked
            for; 0: there is none.
        length_penalty: Exponent of the length in its scores.
        labels: Of an encoder that classifies, a file with the classes' names, one a line; default
            `labels.txt` beside the `.keras` file, if it is there.
        between: Separators between a question and its text; RoBERTa has 2.
        source_begin: Ids that each source begins with; converted BARTs have 0.
        source_end: Ids that each source ends with; converted T5s have 1, BARTs 2.

    Raises:
        ValueError: If there is no model or no tokenizer, or a number is out of range.
    """
    model_file = source / "model.keras" if source.is_dir() else source
    tokenizer = tokenizer or model_file.parent / "tokenizer"
    output = output or model_file.parent / "export"
    given = [] if labels is None else [labels]
    for path in (model_file, tokenizer, *given):
        if not path.exists():
            raise ValueError(f"source must be a finished run or a .keras file; there is no {path}.")
    numbers = {"max-new-tokens": max_new_tokens, "temperature": temperature, "top-p": top_p}
    numbers |= {"beams": beams, "length-penalty": length_penalty, "between": between}
    if keras.backend.backend() != "tensorflow":
        paths = [model_file, "--tokenizer", tokenizer, "--output", output]
        options = [f"--{name}={number}" for name, number in numbers.items()]
        options += [f"--labels={path}" for path in given]
        for name, ids in (("begin", source_begin), ("end", source_end)):
            options += [f"--source-{name}", *map(str, ids)] if ids else []
        command = [sys.executable, __file__, *map(str, paths), *options]
        subprocess.run(command, check=True, env=os.environ | {"KERAS_BACKEND": "tensorflow"})
        return
    tokenizer = ka.text.load_tokenizer(tokenizer)
    model = keras.saving.load_model(model_file, compile=False)
    names = read_labels(labels or model_file.parent / "labels.txt")
    version = next_version(output)
    head = head_of(model)
    # The logits of classes look like those of tokens; a decoder has no names for them.
    if head is not None and ("labels" not in head.options or names):
        folder = ka.serving.export_encoder(
            model, output, tokenizer, labels=names or None, between=between, version=version
        )
    else:
        options = {"max_new_tokens": max_new_tokens, "version": version}
        options["sampler"] = ka.generation.Sample(
            ka.generation.Temperature(temperature), ka.generation.TopP(top_p)
        )
        if beams:
            search = ka.generation.BeamSearch(beams, length_penalty=length_penalty)
            options["search"] = search
        if source_begin or source_end:
            options["source_edges"] = source_begin, source_end
        own = model_file.parent / "source_tokenizer"
        if own.is_dir():
            options["source_tokenizer"] = ka.text.load_tokenizer(own)
        folder = export_decoder(model, output, tokenizer, **options)
    print(f"Exported to {folder}.")


def export_decoder(model, output, tokenizer, **options):
    """Exports a model that writes, and returns the folder of the version."""
    newline, end = tokenizer.encode("\n"), tokenizer.special_ids.get("end")
    has_source = "source_ids" in [x.name for x in model.inputs]
    return ka.serving.export(
        model,
        output,
        tokenizer,
        stop_ids=[] if end is None else [end],
        # A target begins with the tokenizer's own id. A text of its own begins on a new line; only
        # some tokenizers have a token for that.
        bos_id=newline[0] if newline and not has_source else None,
        **options,
    )


def read_labels(path):
    """Returns the lines of a file, or none of one that is not there."""
    return path.read_text("utf-8").splitlines() if path.exists() else []


def next_version(folder):
    """Returns the number after the highest of a model folder: servers take a version as final."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=0) + 1


if __name__ == "__main__":
    try:
        tyro.cli(export_model, description=__doc__)
    except ValueError as error:
        sys.exit(f"export_model: {error}")
