"""All families, by `model_type`."""

from keras_arch.checkpoints.bart import BART
from keras_arch.checkpoints.bert import BERTS
from keras_arch.checkpoints.distilbert import DISTILBERTS
from keras_arch.checkpoints.electra import ELECTRAS
from keras_arch.checkpoints.gpt2 import GPT2
from keras_arch.checkpoints.llama import LLAMAS
from keras_arch.checkpoints.marian import MARIAN
from keras_arch.checkpoints.roberta import ROBERTAS
from keras_arch.checkpoints.t5 import T5

_ALL = (GPT2, *LLAMAS, T5, BART, MARIAN, *BERTS, *ROBERTAS, *DISTILBERTS, *ELECTRAS)

#: `model_type` -> the family; of encoders, that without a head.
FAMILIES = {family.model_type: family for family in _ALL if family.head is None}


def families_named(model_type):
    """Returns the families of this name by their heads' names; None: without a head to choose.

    Raises:
        ValueError: If there is none of this name.
    """
    if model_type not in FAMILIES:
        raise ValueError(
            f"family (config.json's model_type) must be one of {sorted(FAMILIES)}; "
            f"received {model_type!r}."
        )
    return {family.head: family for family in _ALL if family.model_type == model_type}


def family_named(model_type, head=None):
    """Returns the family.

    Raises:
        ValueError: If there is none of this name, or it has no such head.
    """
    heads = families_named(model_type)
    if head not in heads:
        raise ValueError(
            f"head must be one of {list(heads)} for {model_type}; received head={head!r}."
        )
    return heads[head]
