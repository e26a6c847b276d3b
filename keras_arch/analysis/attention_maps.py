"""Where a decoder looks: attention weights of a model, and a picture of them."""

import numpy as np
from keras import ops

from keras_arch.generation.attending import attending_calls, attending_weights
from keras_arch.generation.graph import read_graph

INK = "#444444"


def attention_weights(model, inputs):
    """Returns the weights by which the decoders of a functional model attend to its source.

    Args:
        model: A functional model with layers that are `AttentionDecoder`, `ContextAttention`,
            `CrossAttention` (maybe in a residual part) or `CrossDecoderBlock`.
        inputs: Dict of arrays, by the names of the model's inputs.

    Returns:
        Dict from the layer's name to float32 numpy `[B, T, S]`, or with heads `[B, N, T, S]`.

    Raises:
        ValueError: If the model has no such layer, or `inputs` not its inputs.
    """
    graph = read_graph(model)
    if not attending_calls(graph):
        raise ValueError(f"the model {model.name!r} has no layer that attends to a source.")
    if sorted(inputs) != sorted(graph.inputs):
        raise ValueError(f"inputs must hold {sorted(graph.inputs)}; received {sorted(inputs)}.")
    tensors = {name: ops.convert_to_tensor(x) for name, x in inputs.items()}
    weights = attending_weights(graph, tensors)
    return {name: ops.convert_to_numpy(x) for name, x in weights.items()}


def plot_alignment(weights, source, target, path):
    """Writes a PNG, the heat map of an alignment: target tokens downwards, the source's across.

    Args:
        weights: float `[T, S]`, between 0 and 1.
        source: S strings.
        target: T strings.
        path: File to write.

    Raises:
        ValueError: If the shape of `weights` is not that of the tokens.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    weights = np.asarray(weights, "float32")
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"weights must have shape [T, S] = {(len(target), len(source))}, of target and source; "
            f"received {weights.shape}."
        )
    size = (1.5 + 0.4 * len(source), 1.5 + 0.35 * len(target))
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    source, target = ([_shown(token) for token in tokens] for tokens in (source, target))
    axes.set_xticks(range(len(source)), source, rotation=90, parse_math=False)
    axes.set_yticks(range(len(target)), target, parse_math=False)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    figure.savefig(path, format="png")


def _shown(token):
    """Returns a token as it can be drawn: no font has a picture of what is not printable."""
    return token if token.isprintable() else ascii(token)[1:-1]
