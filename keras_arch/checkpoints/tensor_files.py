"""Safetensors files: found, checked and read one tensor at a time; nothing is unpickled."""

import json
import os
import pathlib
import re

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"

#: What their names of float types are in NumPy.
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def _package():
    """Returns the package.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            'checkpoints need the package safetensors: pip install "keras-arch[checkpoints]"'
        ) from error
    return safetensors


class TensorFiles:
    """The tensors of some files.

    Args:
        paths: Paths of safetensors files.

    Raises:
        ValueError: If a file is damaged, or two have a tensor of the same name.
    """

    def __init__(self, paths):
        self._open = _package().safe_open
        self._error = _package().SafetensorError
        self.files, self.shapes, self.dtypes = {}, {}, {}
        for path in paths:
            self._index(pathlib.Path(path))

    def _index(self, path):
        try:
            with self._open(path, "np") as file:
                for name in file.keys():  # noqa: SIM118 (not a dict)
                    if name in self.files:
                        raise ValueError(f"{name} is in {self.files[name]} and again in {path}.")
                    self.files[name] = path
                    self.shapes[name] = tuple(file.get_slice(name).get_shape())
                    self.dtypes[name] = file.get_slice(name).get_dtype()
        except self._error as error:
            raise ValueError(f"{path} is no whole safetensors file: {error}.") from error

    def read(self, name):
        """Returns a tensor, float32."""
        # Opened for each: what a file has mapped into memory is let go with it.
        with self._open(self.files[name], "np") as file:
            return file.get_tensor(name).astype("float32", copy=False)


def find_files(source):
    """Returns the `config.json` and the safetensors files of a checkpoint.

    Args:
        source: A folder; or a file, or several, with their `config.json` beside the first.

    Raises:
        ValueError: If there are none, or the index names a file outside the folder or not there.
    """
    if isinstance(source, str | os.PathLike):
        source = pathlib.Path(source)
        files = _in_folder(source) if source.is_dir() else [source]
    else:
        files = [pathlib.Path(path) for path in source]
        if not files:
            raise ValueError(f"source must name at least one file; received source={source!r}.")
    for path in files:
        _check_file(path)
    config = files[0].parent / CONFIG
    if not config.is_file():
        raise ValueError(f"a checkpoint has a {CONFIG} beside its tensors; there is no {config}.")
    return config, files


def read_object(path):
    """Returns the object in a JSON file.

    Raises:
        ValueError: If there is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be a JSON file; reading it failed: {error}.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object; received a {type(value).__name__}.")
    return value


def _in_folder(folder):
    if (folder / SINGLE).exists():
        return [folder / SINGLE]
    if (folder / INDEX).exists():
        return _in_index(folder / INDEX)
    pickled = [x for x in sorted(folder.iterdir()) if x.suffix in (".bin", ".pt", ".pth", ".ckpt")]
    if pickled:
        _check_file(pickled[0])
    raise ValueError(f"source must hold {SINGLE} or {INDEX}; received source={str(folder)!r}.")


def _in_index(index):
    places = read_object(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{index} must have a weight_map; received weight_map={places!r}.")
    for name in places.values():
        if not isinstance(name, str) or re.fullmatch(r"(?!\.\.$)[^/\\]+", name) is None:
            raise ValueError(f"{index} must name files of its own folder; received {name!r}.")
    return [index.parent / name for name in sorted(set(places.values()))]


def _check_file(path):
    if path.suffix != ".safetensors":
        raise ValueError(
            f"{path} is not read: only .safetensors files are, for files of pickled objects run "
            "code when opened. Where you trust the file, convert it once in transformers: "
            "AutoModel.from_pretrained(folder).save_pretrained(new_folder)."
        )
    if not path.is_file():
        raise ValueError(f"the checkpoint is not complete: there is no {path}.")
