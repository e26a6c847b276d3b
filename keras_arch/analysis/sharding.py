"""How a training is spread over n devices: what each one holds, computes and sends.

| sharding   | rows | tokens | matrices | sent in a micro-batch                            |
|------------|------|--------|----------|--------------------------------------------------|
| "data"     | B/n  | T      | whole    | gradients                                        |
| "tensor"   | B    | T      | 1/n      | the stream, four times a block and twice outside |
| "sequence" | B    | T/n    | whole    | gradients; keys and values                       |

"tensor" is Megatron's (Shoeybi et al. 2019, section 3): heads and hidden units split, so that each
of a block's two sublayers sums the stream over the devices once forwards and once backwards; the
table by tokens, where n divides V, which sums the looked-up vectors forwards and the gradient of
the head's input backwards. "sequence" splits the queries, gathers all keys and values forwards and
sums the shares of their gradients backwards (Grattafiori et al. 2024, section 3.3.2).
"""

from typing import NamedTuple

SHARDINGS = ("data", "tensor", "sequence")


class Share(NamedTuple):
    """What one device has of a micro-batch and of the model.

    Attributes:
        rows: Of the micro-batch.
        tokens: Of each row.
        parts: Into how many parts heads and hidden units are split.
        table_parts: Into how many the table and the head are.
        gathers: Whether keys and values of the other devices' tokens come to this one.
    """

    rows: int
    tokens: int
    parts: int = 1
    table_parts: int = 1
    gathers: bool = False


def share(sizes, rows, tokens, devices, sharding):
    """Returns the Share of each device.

    Args:
        sizes: A `Stack`.
        rows: Rows of a micro-batch, on all devices.
        tokens: Tokens of a row.
        devices: n.
        sharding: One of `SHARDINGS`.

    Raises:
        ValueError: If n does not divide what is split.
    """
    if sharding not in SHARDINGS:
        raise ValueError(f"sharding must be one of {SHARDINGS}; received sharding={sharding!r}.")
    config = sizes.config
    if sharding == "data":
        _check_divides(devices, sharding, batch_size=rows)
        return Share(rows // devices, tokens)
    if sharding == "sequence":
        _check_divides(devices, sharding, length=tokens)
        return Share(rows, tokens // devices, gathers=devices > 1)
    _check_divides(
        devices,
        sharding,
        heads=config.heads,
        key_value_heads=sizes.key_value_heads,
        hidden_width=config.hidden_width,
    )
    table_parts = 1 if config.vocabulary_size % devices else devices
    return Share(rows, tokens, devices, table_parts)


def _check_divides(devices, sharding, **split):
    for name, value in split.items():
        if value % devices:
            raise ValueError(
                f"devices must divide {name} with sharding={sharding!r}; received "
                f"devices={devices}, {name}={value}."
            )


def parameters_of(sizes, part):
    """Returns the parameters that one device holds. Biases after a sum are whole, as norms are."""
    config = sizes.config
    split = config.layers * (sizes.block_matrices + sizes.split_biases) // part.parts
    table = (sizes.table + sizes.own_head) // part.table_parts
    return split + table + config.layers * sizes.vectors + sizes.positions + sizes.final_norm


def sent_bytes(sizes, part, devices, sharding, itemsize):
    """Returns the bytes that each device sends in a micro-batch, by rings.

    A sum over all devices sends each share around twice but for one stop, `2 (n - 1) / n` of the
    array; a gathering, or a sum of which each keeps its share, half of that (Patarasu & Yuan 2009,
    section 3). Gradients are float32; the stream, keys and values what the model computes in.
    """
    config, once = sizes.config, (devices - 1) / devices
    gradients = 2 * once * 4 * parameters_of(sizes, part)
    if sharding == "data":
        return gradients
    if sharding == "tensor":
        sums = 4 * config.layers + (2 if part.table_parts > 1 else 0)
        return 2 * once * sums * part.rows * part.tokens * config.width * itemsize
    slots = config.layers * part.rows * part.tokens * devices
    keys_and_values = slots * 2 * sizes.key_value_heads * config.head_width * itemsize
    return gradients + 2 * once * keys_and_values


def training_flops_of(sizes, part, keys):
    """Returns the FLOPs of a micro-batch on one device; see `costs.training_flops`.

    Args:
        sizes: A `Stack`.
        part: The device's Share.
        keys: Tokens that each token attends to, T.
    """
    config = sizes.config
    attention = 4 * sizes.heads_width * keys
    blocks = config.layers * (2 * sizes.block_matrices + attention) / part.parts
    head = 2 * sizes.table / part.table_parts
    return 3 * part.rows * part.tokens * (blocks + head)


def activation_bytes_of(sizes, part, keys, itemsize):
    """Returns the bytes that wait on a device for the way back, at their most.

    A block keeps for each token, in what the model computes in:

    * 6 D that every device has: the stream after both sublayers, both norms' outputs, attention's
      input without pads and its output;
    * its share of queries, keys, values and what they mix, `(N + 2 K) H + N H`, and of the
      feed-forward network's units, `(2 G + 1) F`: the products with the matrix, what the
      activation is made of, and its outputs;
    * in float32 its share of `2 N T`: the scores' exponentials and the weights, for all T keys.

    The way back begins with 3 V numbers a token, the logits, their softmax and their gradient, or
    with the 3 N T of a block's attention, whichever is more. Keys and values gathered from other
    devices are kept as well. XLA's own count is within 15 % of this in float32, see
    `tests/analysis/test_sharding.py`. Not in here: dropout's noise; the float32 copies that XLA on
    CPU makes in half precision, which has no such products there. Kernels that never write the
    scores (FlashAttention, Dao et al. 2022) need none of the terms in T.
    """
    config = sizes.config
    split = sizes.query_key_value + sizes.heads_width + 2 * sizes.hidden + config.hidden_width
    scores = 4 * config.heads * keys / part.parts
    block = itemsize * (6 * config.width + split / part.parts) + 2 * scores
    if part.gathers:
        others = keys / part.tokens - 1
        block += itemsize * others * 2 * sizes.key_value_heads * config.head_width
    start = max(3 * 4 * config.vocabulary_size / part.table_parts, 3 * scores)
    return part.rows * part.tokens * (config.layers * block + start)
