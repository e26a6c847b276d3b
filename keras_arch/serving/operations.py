"""Which operations a SavedModel runs, and which of them a server may lack."""

import os
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

#: Those that call back into the Python process that made them.
PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})

#: Those for compilers and devices that a server may have been built without.
SPECIAL = ("Xla", "TPU")

#: Those of tensorflow_text 2.21, which TensorFlow Serving is linked with.
TEXT = frozenset(
    {
        "CaseFoldUTF8",
        "ConstrainedSequence",
        "FastBertNormalize",
        "FastWordpieceTokenizeWithOffsets",
        "FindSourceOffsets",
        "MaxSpanningTree",
        "NormalizeUTF8",
        "NormalizeUTF8WithOffsetsMap",
        "PhraseTokenize",
        "RegexSplitWithOffsets",
        "SentenceFragments",
        "SentenceFragmentsV2",
        "SentencepieceDetokenizeOp",
        "SentencepieceIdToStringOp",
        "SentencepieceOp",
        "SentencepieceStringToIdOp",
        "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp",
        "SentencepieceVocabSizeOp",
        "SplitMergeTokenizeWithOffsets",
        "TFText>BoiseTagsToOffsets",
        "TFText>ByteSplitByOffsets",
        "TFText>ByteSplitWithOffsets",
        "TFText>FastSentencepieceDetokenize",
        "TFText>FastSentencepieceTokenize",
        "TFText>FastWordpieceDetokenize",
        "TFText>NgramsStringJoin",
        "TFText>OffsetsToBoiseTags",
        "TFText>PhraseDetokenize",
        "TFText>RoundRobinGenerateMasks",
        "TFText>RoundRobinTrim",
        "TFText>Utf8Binarize",
        "TFText>WhitespaceTokenizeWithOffsetsV2",
        "TokenizerFromLogits",
        "UnicodeScriptTokenizeWithOffsets",
        "WhitespaceTokenizeWithOffsets",
        "WordpieceTokenizeWithOffsets",
    }
)


def operations(folder: str | os.PathLike) -> set[str]:
    """Returns the names of all operations in `folder/saved_model.pb`, functions' included."""
    content = (Path(folder) / "saved_model.pb").read_bytes()
    names = set()
    for graph in saved_model_pb2.SavedModel.FromString(content).meta_graphs:
        functions = graph.graph_def.library.function
        nodes = [*graph.graph_def.node, *(node for f in functions for node in f.node_def)]
        # A function of the library may be called by its own name.
        names |= {node.op for node in nodes} - {f.signature.name for f in functions}
    return names


def foreign_operations(folder: str | os.PathLike) -> list[str]:
    """Returns those operations that are neither TensorFlow's core nor tensorflow_text's, sorted.

    What calls Python, and what is there for XLA and TPUs only, is foreign too.
    """
    return sorted(name for name in operations(folder) - TEXT if not _is_core(name))


def _is_core(name):
    return hasattr(tf.raw_ops, name) and name not in PYTHON and not name.startswith(SPECIAL)
