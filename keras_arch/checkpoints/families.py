"""All families, by `model_type`."""

from keras_arch.checkpoints.bart import BART
from keras_arch.checkpoints.gpt2 import GPT2
from keras_arch.checkpoints.llama import LLAMAS
from keras_arch.checkpoints.t5 import T5

FAMILIES = {family.model_type: family for family in (GPT2, *LLAMAS, T5, BART)}


def family_named(model_type):
    """Returns the family.

    Raises:
        ValueError: If there is none of this name.
    """
    if model_type not in FAMILIES:
        raise ValueError(
            f"family (config.json's model_type) must be one of {sorted(FAMILIES)}; "
            f"received {model_type!r}."
        )
    return FAMILIES[model_type]
