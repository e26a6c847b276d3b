"""Converts a Hugging Face checkpoint to a .keras file, or a .keras file to a checkpoint.

The checkpoint's tokenizer goes along into `tokenizer/` beside the .keras file, as in a run folder;
of a translator with two, the source's into `source_tokenizer/`; the names of classes into
`labels.txt`.

python recipes/convert_checkpoint.py gpt2_folder --output gpt2.keras
python recipes/convert_checkpoint.py my.keras --output my_folder --fields '{"eos_token_id": 2}'
"""

import json
import pathlib
import sys

import keras
import tyro

import keras_arch as ka

#: Where the names of the classes are, beside a .keras file.
LABELS = "labels.txt"


def convert(
    source: tyro.conf.Positional[pathlib.Path],
    output: pathlib.Path,
    family: str | None = None,
    dropout: float = 0.0,
    ignore_fields: tuple[str, ...] = (),
    head: str | None = None,
    fields: str = "{}",
):
    """Converts in the direction that the names of source and output say, and prints what was read.

    Args:
        source: A folder with `config.json` and safetensors, or a `.keras` file.
        output: A `.keras` file, or a folder.
        family: What the checkpoint is, a `model_type`; default what `config.json` says, or the
            first that can express the model.
        dropout: Rate of dropout in the `.keras` file.
        ignore_fields: Fields of `config.json` to go on without.
        head: What to read on an encoder, as "masked_lm"; default nothing.
        fields: More of them to write, as JSON.

    Raises:
        ValueError: If none or both are `.keras` files, the output is there already, an option
            belongs to the other direction, or fields are no JSON.
    """
    to_keras = output.suffix == ".keras"
    if to_keras == (source.suffix == ".keras"):
        raise ValueError(f"one must be a .keras file; received source={source}, output={output}.")
    if not source.exists():
        raise ValueError(f"source must be there; received source={source}.")
    if to_keras:
        if fields != "{}":
            raise ValueError(f"fields are of a folder's config.json; received fields={fields}.")
        if output.exists():
            raise ValueError(f"output must not be there yet; received output={output}.")
        loaded = ka.checkpoints.read(source, family, dropout, ignore_fields, head)
        print(loaded.report)
        output.parent.mkdir(parents=True, exist_ok=True)
        with ka.training.replacing(output) as temporary:
            loaded.model.save(temporary)
        print(write_tokenizers(source, output.parent, loaded.config))
        if loaded.report.labels:
            print(write_labels(loaded.report.labels, output.parent / LABELS))
    else:
        if dropout or ignore_fields or head:
            raise ValueError(
                "dropout, ignore_fields and head are of checkpoints that are read; received "
                f"dropout={dropout}, ignore_fields={ignore_fields}, head={head!r}."
            )
        fields = parse_fields(fields)
        model = keras.saving.load_model(source, compile=False)
        names = source.parent / LABELS
        labels = names.read_text("utf-8").splitlines() if names.exists() else None
        ka.checkpoints.save(model, output, family, fields, labels=labels)
    print(f"Converted to {output}.")


def parse_fields(fields):
    """Returns fields written as JSON; raises ValueError if they are no object."""
    try:
        found = json.loads(fields)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"fields must be a JSON object; received fields={fields!r}.")
    return found


def write_tokenizers(source, folder, config):
    """Saves the tokenizers of a checkpoint into a folder, and returns what to say of them.

    Args:
        source: The checkpoint's folder, or a file in it.
        folder: Where to.
        config: Of the model.
    """
    source = source if source.is_dir() else source.parent
    said = [write_tokenizer(source, folder / "tokenizer", config.vocabulary_size, "target")]
    if (source / "source.spm").exists():
        size = getattr(config, "source_vocabulary_size", None) or config.vocabulary_size
        said.append(write_tokenizer(source, folder / "source_tokenizer", size, "source"))
    return "\n".join(said)


def write_tokenizer(source, folder, vocabulary_size, side):
    """Saves a tokenizer into a folder of its own, and returns what to say of it.

    One that is there already stays as it is.
    """
    if folder.exists():
        return f"No tokenizer written: {folder} is there already."
    try:
        tokenizer = ka.text.read_tokenizer(source, vocabulary_size, side)
    except ValueError as error:
        return f"No tokenizer written: {error}"
    tokenizer.save(folder)
    return f"Its tokenizer, {tokenizer.name} of {tokenizer.vocabulary_size} tokens: {folder}."


def write_labels(labels, path):
    """Writes the names of the classes, one a line, and returns what to say of it."""
    if path.exists():
        return f"No names of classes written: {path} is there already."
    ka.training.write_text(path, "\n".join(labels) + "\n")
    return f"The names of its {len(labels)} classes: {path}."


if __name__ == "__main__":
    try:
        tyro.cli(convert, description=__doc__)
    except (ValueError, OSError) as error:
        sys.exit(f"convert_checkpoint: {error}")
