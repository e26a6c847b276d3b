"""The classes of a head: their names in `config.json`, and how a model was made of them."""

#: As `transformers` has it where a file says nothing.
_COUNT = 2


def read_labels(fields):
    """Returns the names of the classes that a file tells, in order; "LABEL_0", ... if it has none.

    Args:
        fields: A `Fields`.

    Raises:
        ValueError: If `id2label` does not number them 0, 1, ..., or `num_labels` is another number.
    """
    names, count = fields.get("id2label"), fields.get("num_labels")
    if names is None:
        return default_labels(_COUNT if count is None else count)
    numbers = [str(i) for i in range(len(names))]
    if {*names} != {*numbers} or not names:
        raise ValueError(
            f"config.json: id2label must name the classes '0', '1', ...; received id2label={names}."
        )
    fields.expect("num_labels", len(names), None)
    return tuple(str(names[number]) for number in numbers)


def default_labels(count):
    """Returns the names that `transformers` gives classes without any."""
    return tuple(f"LABEL_{i}" for i in range(count))


def written_labels(labels):
    """Returns the fields of `config.json` that tell the names of the classes."""
    names = dict(enumerate(labels))
    return {
        "id2label": {str(i): name for i, name in names.items()},
        "label2id": {name: i for i, name in names.items()},
    }


def head_options(model):
    """Returns what the head of a model was made of, by argument name: `classes` and `dropout`.

    Raises:
        ValueError: If the model has no such layers.
    """
    return {
        "classes": model.get_layer("classes").units,
        "dropout": model.get_layer("classes_dropout").rate,
    }
