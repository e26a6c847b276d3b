"""Writing safetensors files, one weight at a time.

The format: the header's length, int64; the header, JSON; then the tensors, one after another.
Written here because the package's own writer wants all tensors of a file in memory at once.
Source: https://github.com/huggingface/safetensors, "Format".
"""

import json
import math

import keras
import numpy as np

from keras_arch.checkpoints.tensor_files import FLOATS, INDEX, SINGLE

_CODES = {dtype: code for code, dtype in FLOATS.items()}


def shards_of(rows, weights, shard_bytes):
    """Returns the rows in lists, one for each file.

    Args:
        rows: A table.
        weights: Our weights, by path.
        shard_bytes: Most bytes of a file that has more than one weight.

    Raises:
        ValueError: If a weight is not of floats.
    """
    shards, size = [[]], 0
    for row in rows:
        more = _bytes(weights[row.weight])
        if shards[-1] and size + more > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(row)
        size += more
    return shards


def write_shards(folder, shards, weights):
    """Writes one file, or several and their index, into a folder."""
    if len(shards) == 1:
        _write(folder / SINGLE, shards[0], weights)
        return
    places = {}
    for i, rows in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        _write(folder / name, rows, weights)
        places |= {tensor: name for row in rows for tensor in row.tensors}
    total = sum(_bytes(weights[row.weight]) for rows in shards for row in rows)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write(path, rows, weights):
    # transformers reads files that say what framework's conventions they follow.
    header, begin = {"__metadata__": {"format": "pt"}}, 0
    for row in rows:
        weight = weights[row.weight]
        for name, shape in zip(row.tensors, row.shapes(tuple(weight.shape)), strict=True):
            end = begin + math.prod(shape) * _dtype(weight).itemsize
            code = _CODES[_dtype(weight).name]
            header[name] = {"dtype": code, "shape": shape, "data_offsets": [begin, end]}
            begin = end
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for row in rows:
            weight = weights[row.weight]
            array = keras.ops.convert_to_numpy(weight).astype(_dtype(weight), copy=False)
            for part in row.split(array).values():
                file.write(np.ascontiguousarray(part).reshape(-1).view("uint8"))


def _bytes(weight):
    return math.prod(weight.shape) * _dtype(weight).itemsize


def _dtype(weight):
    name = keras.backend.standardize_dtype(weight.dtype)
    if name not in _CODES:
        raise ValueError(
            f"model must have weights of {sorted(_CODES)}; {weight.path} is {name}. Save it before "
            "it is quantised."
        )
    return np.dtype(name)
