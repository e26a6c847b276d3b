"""A GPT-2 checkpoint of one block, made by hand: names and shapes as published."""

import json
import re
import struct

import numpy as np
from safetensors.numpy import save_file

V, WIDTH, CONTEXT = 11, 8, 6
CONFIG = {
    "model_type": "gpt2",
    "vocab_size": V,
    "n_embd": WIDTH,
    "n_layer": 1,
    "n_head": 2,
    "n_positions": CONTEXT,
    "eos_token_id": 3,
}
SHAPES = {
    "wte.weight": (V, WIDTH),
    "wpe.weight": (CONTEXT, WIDTH),
    "h.0.ln_1.weight": (WIDTH,),
    "h.0.ln_1.bias": (WIDTH,),
    "h.0.attn.c_attn.weight": (WIDTH, 3 * WIDTH),
    "h.0.attn.c_attn.bias": (3 * WIDTH,),
    "h.0.attn.c_proj.weight": (WIDTH, WIDTH),
    "h.0.attn.c_proj.bias": (WIDTH,),
    "h.0.ln_2.weight": (WIDTH,),
    "h.0.ln_2.bias": (WIDTH,),
    "h.0.mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
    "h.0.mlp.c_fc.bias": (4 * WIDTH,),
    "h.0.mlp.c_proj.weight": (4 * WIDTH, WIDTH),
    "h.0.mlp.c_proj.bias": (WIDTH,),
    "ln_f.weight": (WIDTH,),
    "ln_f.bias": (WIDTH,),
}


def tensors(prefix="transformer."):
    """Returns all tensors, float32, by name."""
    random = np.random.default_rng(0)
    return {prefix + x: random.normal(size=s).astype("float32") for x, s in SHAPES.items()}


def write(folder, tensors, name="model.safetensors", **fields):
    """Writes a file of tensors and `config.json`; returns the folder."""
    save_file(tensors, folder / name)
    (folder / "config.json").write_text(json.dumps(CONFIG | fields))
    return folder


def write_raw(path, tensors):
    """Writes a file of tensors of given types, byte by byte as the format says.

    Args:
        path: The file.
        tensors: Name -> type as the format spells it, and an array with its bytes.
    """
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_shards(folder, *shards):
    """Writes files "0.safetensors", ... and their index; returns the folder."""
    places = {}
    for i, shard in enumerate(shards):
        write(folder, shard, f"{i}.safetensors")
        places |= dict.fromkeys(shard, f"{i}.safetensors")
    return write_index(folder, places)


def write_index(folder, places):
    """Writes an index; returns the folder."""
    index = json.dumps({"metadata": {}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index)
    return folder


def in_any_order(*words):
    """Returns a regular expression of texts that have all the words."""
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)
