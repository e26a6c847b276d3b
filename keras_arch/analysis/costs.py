"""What a decoder-only model costs: parameters, FLOPs, activations, cache, from its config alone.

Letters: B rows, T tokens of a row, L blocks, D width, N heads, K key/value heads, H head width, F
hidden width, V vocabulary; G matrices into the hidden width, 2 for a gated network, else 1.
"""

from typing import NamedTuple

from keras_arch.models import GPT2Config, LlamaConfig


class Stack(NamedTuple):
    """The sizes of a decoder-only model. All counts are entries, not bytes.

    Attributes:
        config: A `GPT2Config` or `LlamaConfig`.
        key_value_heads: K.
        query_key_value: Columns of the matrix that projects to them, `(N + 2 K) H`.
        hidden: Columns of the matrix into the feed-forward network, `G F`.
        split_biases: Biases of these two, of a block.
        vectors: Norms and other biases of a block, and the norms of its heads.
        positions: Entries of the table of positions.
        final_norm: Entries of the last norm.
        slot_integers: int32 numbers that a block's cache keeps of a slot, besides keys and values.
    """

    config: object
    key_value_heads: int
    query_key_value: int
    hidden: int
    split_biases: int
    vectors: int
    positions: int
    final_norm: int
    slot_integers: int

    @property
    def heads_width(self):
        """N H, the width of what attention mixes."""
        return self.config.heads * self.config.head_width

    @property
    def block_matrices(self):
        """Entries of a block's matrices: `D ((N + 2 K) H + N H + G F + F)`."""
        config = self.config
        columns = self.query_key_value + self.heads_width + self.hidden + config.hidden_width
        return config.width * columns

    @property
    def table(self):
        """Entries of the table of tokens, `V D`."""
        return self.config.vocabulary_size * self.config.width

    @property
    def own_head(self):
        """Entries of the head's own matrix; 0 if the head is the table."""
        return 0 if self.config.tied else self.table

    @property
    def parameters(self):
        """All parameters, as `model.count_params()` counts them."""
        block = self.block_matrices + self.split_biases + self.vectors
        outside = self.table + self.own_head + self.positions + self.final_norm
        return self.config.layers * block + outside

    @property
    def matrix_entries(self):
        """Entries that each token is multiplied by: the blocks' and the head's.

        The head counts whether or not it is the table; the lookup in the table multiplies nothing.
        """
        return self.config.layers * self.block_matrices + self.table


def stack(config):
    """Returns the Stack of a config.

    Raises:
        ValueError: If it is neither a GPT2Config nor a LlamaConfig.
    """
    if type(config) is GPT2Config:
        return _gpt2(config)
    if type(config) is LlamaConfig:
        return _llama(config)
    raise ValueError(f"config must be a GPT2Config or a LlamaConfig; received config={config!r}.")


def _gpt2(config):
    width, biased = config.width, config.use_bias
    columns = 3 * config.heads * config.head_width
    norm = width * (1 + biased)
    return Stack(
        config,
        key_value_heads=config.heads,
        query_key_value=columns,
        hidden=config.hidden_width,
        split_biases=biased * (columns + config.hidden_width),
        vectors=2 * norm + biased * 2 * width,
        positions=config.context_length * width,
        final_norm=norm,
        slot_integers=1,
    )


def _llama(config):
    width, scaling = config.width, config.rotary_scaling
    columns = (config.heads + 2 * config.key_value_heads) * config.head_width
    hidden = 2 * config.hidden_width
    biases = (config.use_output_bias + config.use_feedforward_bias) * width
    turns_late = scaling is not None and scaling.depends_on_length
    return Stack(
        config,
        key_value_heads=config.key_value_heads,
        query_key_value=columns,
        hidden=hidden,
        split_biases=config.use_bias * columns + config.use_feedforward_bias * hidden,
        vectors=2 * width + biases + config.query_key_norm * 2 * config.head_width,
        positions=0,
        final_norm=width,
        slot_integers=2 if turns_late or config.window is not None else 1,
    )


def forward_flops(config, length):
    """Returns the FLOPs of one token's way through the model, in a row of `length` tokens.

    A product with a matrix takes a multiplication and an addition for each of its entries; a score
    takes 2 H and so does its share of the mix, for each head and each token of the row:

        2 * (L D ((N + 2 K) H + N H + G F + F) + V D) + 4 L N H T

    The blocks compute all T scores of a token and then mask those of the future, so T is not
    halved. Norms, softmax and activations, a few percent in narrow models, are left out.

    Often printed and not this: 2 per *parameter*, which counts the lookup in an untied table and
    no attention; attention alone, without the feed-forward network; and `O(M^2)` for a token
    decoded with a cache, which takes `4 L N H M` besides its matrices. Source: Kaplan et al. 2020,
    section 2.1, which leaves out the head; Hoffmann et al. 2022, appendix F, which has it, but
    multiplies for the lookup as well.
    """
    sizes = stack(config)
    return 2 * sizes.matrix_entries + 4 * config.layers * sizes.heads_width * length


def training_flops(config, length):
    """Returns the FLOPs of one token in a training step, three times those of `forward_flops`.

    Backwards, each product becomes two of its size: one for the gradient of either factor.
    """
    return 3 * forward_flops(config, length)


def cache_bytes(config, batch_size, length, itemsize=4):
    """Returns the bytes of the state that decoding keeps, with `length` slots a row.

    Each block keeps keys and values, `2 K H` numbers for each slot, and the int32 number of its
    segment; with a window, or frequencies that depend on the length, its int32 position as well.
    """
    sizes = stack(config)
    slot = 2 * sizes.key_value_heads * config.head_width * itemsize + 4 * sizes.slot_integers
    return config.layers * batch_size * length * slot
