"""Checkpoints of `transformers` read here and written back."""

import json

import numpy as np
import torch
from safetensors.numpy import load_file

import keras_arch as ka


def randomised(model, scale=0.3):
    """Returns a model of theirs with weights large enough for each of them to matter."""
    model.eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        # Those that are not trained are constants.
        for parameter in (x for x in model.parameters() if x.requires_grad):
            mean = 1.0 if parameter.ndim == 1 else 0.0
            parameter.normal_(mean, scale, generator=random)
    return model


def saved(model, folder, **options):
    """Returns a model of theirs, saved by them, and what we read: a `Loaded`."""
    model.save_pretrained(folder)
    return model, ka.checkpoints.read(folder, **options)


def check_round_trip(theirs, ours, folder, inputs, fields=None):
    """Asserts that what we save is, to them, what we read.

    Args:
        theirs: Their model.
        ours: What it was read as, a model.
        folder: An empty folder.
        inputs: Of their model, by name.
        fields: More of `config.json`, that our model does not know.
    """
    theirs.save_pretrained(folder / "theirs")
    ka.checkpoints.save(ours, folder / "ours", fields=fields)
    again, info = type(theirs).from_pretrained(folder / "ours", output_loading_info=True)
    assert not any(info.values()), info
    fields = json.loads((folder / "ours" / "config.json").read_text())
    assert fields["model_type"] == theirs.config.model_type
    expected, found = (load_file(folder / x / "model.safetensors") for x in ("theirs", "ours"))
    if theirs.config.model_type == "bart":
        # Zeros, and no parameter.
        del expected["final_logits_bias"]
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    with torch.no_grad():
        found, expected = (model(**inputs)[0] for model in (again, theirs))
    # One activation has several names there, whose rounding differs.
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
