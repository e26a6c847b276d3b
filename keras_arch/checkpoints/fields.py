"""The fields of a `config.json`: each is honoured, refused by name, or known to be harmless."""

import re

from keras_arch.checkpoints.activations import to_ours

#: Say nothing of what the model computes of its inputs: names of the file's makers, precision of
#: the weights, heads of other tasks, initialisation, dropout, and settings of generation.
HARMLESS = re.compile(
    r"""
    _.* | architectures | auto_map | transformers_version | torch_dtype | dtype | torchscript
    | model_type | is_encoder_decoder | use_cache | use_bfloat16 | tokenizer_class | name_or_path
    | attn_implementation
    | gradient_checkpointing | chunk_size_feed_forward | pretraining_tp | return_dict.*
    | output_(hidden_states|attentions|past|scores|router_logits)
    | id2label | label2id | num_labels | problem_type | finetuning_task | task_specific_params
    | (.*_)?(dropout|pdrop|layerdrop)(_rate|_prob)? | summary_.*
    | initializer_(range|factor) | init_std
    | .*_token_ids? | prefix | force_bos_token_to_be_generated
    | (max|min)(_new)?_(length|tokens) | do_sample | early_stopping | num_return_sequences
    | num_beams | num_beam_groups | diversity_penalty | temperature | top_[kp] | typical_p
    | repetition_penalty | length_penalty | (encoder_)?no_repeat_ngram_size | bad_words_ids
    | exponential_decay_length_penalty | suppress_tokens | begin_suppress_tokens
    | remove_invalid_values
    """,
    re.VERBOSE,
)

#: Must have these values wherever they stand.
PLAIN = {
    "quantization_config": None,
    "pruned_heads": {},
    "add_cross_attention": False,
    "is_decoder": False,
    "tie_encoder_decoder": False,
    "cross_attention_hidden_size": None,
    "per_layer_config": None,
}


class Fields:
    """Gives the fields of a `config.json` and remembers which were asked for.

    Args:
        values: The file's object.
        ignored: Names of fields to take for harmless.
    """

    def __init__(self, values, ignored=()):
        self.values = values
        self.ignored = set(ignored)
        self._asked = set(ignored)

    def get(self, name, default=None):
        """Returns a field's value, or `default` where the file has none."""
        self._asked.add(name)
        return self.values.get(name, default)

    def need(self, name):
        """Returns a field's value.

        Raises:
            ValueError: If the file has none.
        """
        if self.values.get(name) is None:
            raise ValueError(f"config.json must have {name}; received {self.values.get(name)!r}.")
        return self.get(name)

    def expect(self, name, *allowed):
        """Refuses a field whose value is not one of those the model can have.

        Raises:
            ValueError: Naming field and value. A field that is not there is right.
        """
        value = self.get(name, allowed[0])
        if value not in allowed and name not in self.ignored:
            values = " or ".join(map(repr, allowed))
            raise ValueError(
                f"config.json: {name} must be {values} to be read into a model of this package; "
                f"received {name}={value!r}."
            )

    def activation(self, name, default):
        """Returns our name of an activation."""
        return to_ours(name, self.get(name, default))

    def harmless(self):
        """Returns the fields nobody asked for, all of them harmless.

        Raises:
            ValueError: If one is not known to be.
        """
        for name, value in PLAIN.items():
            self.expect(name, value, None)
        rest = {name: self.values[name] for name in self.values if name not in self._asked}
        unknown = {name: rest[name] for name in rest if not HARMLESS.fullmatch(name)}
        if unknown:
            listed = ", ".join(f"{name}={value!r}" for name, value in unknown.items())
            raise ValueError(
                f"config.json has fields that are not known here: {listed}. If they do not change "
                f"what the model computes, load with ignore_fields={sorted(unknown)}."
            )
        return rest
