"""Reads data sets of TensorFlow Datasets in parts."""

from collections.abc import Callable
from collections.abc import Iterator

from bert_tf.data import named_datasets
from bert_tf.preparation import input_units
from bert_tf.preparation import options as preparation_options


def sources(
    options: preparation_options.PrepareCorpusOptions, examples_per_unit: int
) -> list[input_units.Source]:
    """Returns the data set that the options name in parts; none without one.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: the data set or split does not exist.
        OSError: the data set cannot be downloaded or prepared.
    """
    if options.tfds_name is None:
        return []
    data = named_datasets.open_data_set(options.tfds_name, options.tfds_data_dir)
    if options.tfds_split not in data.splits:
        raise ValueError(
            f"{options.tfds_name} has no split {options.tfds_split!r}; the splits are "
            f"{', '.join(data.splits)}."
        )
    split = data.splits[options.tfds_split]
    return [
        input_units.Source(
            path=options.tfds_name,
            format="tfds",
            language=options.language,
            start=start,
            end=min(start + examples_per_unit, split.num_examples),
            num_bytes=split.num_bytes * examples_per_unit // (split.num_examples or 1),
        )
        for start in range(0, split.num_examples, examples_per_unit)
    ]


def read(
    source: input_units.Source,
    options: preparation_options.PrepareCorpusOptions,
) -> Iterator[tuple[dict, Callable[[], str]]]:
    """Yields (features, a function that names the example) for a part of a data set."""
    data = named_datasets.open_data_set(source.path, options.tfds_data_dir)
    part = f"{options.tfds_split}[{source.start}:{source.end}]"
    for number, features in enumerate(data.records(part), start=source.start):

        def place(number=number):
            return f"{source.path}, {options.tfds_split}: example {number}"

        yield features, place
