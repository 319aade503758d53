"""Whoever reads a run's data: a named task, a TensorFlow dataset or own tables."""

import dataclasses

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import own_tables
from bert_tf.tasks.classification import tfds
from bert_tf.tasks.classification import xnli

_XNLI = "xnli"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """Who reads the examples, and what is known of them."""

    processor: examples_module.DataProcessor
    columns: examples_module.Columns  # Of the tables.
    task_name: str | None  # Decides on the scores; None for own data.


def data_of(options, trained=None) -> Data:
    """Returns who reads the data that the options name.

    Args:
        options: `RunClassifierOptions`.
        trained: `task.Task` of the run whose model is asked: says what the options
            leave out. None: there is none yet.

    Raises:
        ValueError, OSError: the TensorFlow dataset cannot be read.
    """
    processor: examples_module.DataProcessor
    if options.tfds_name is not None:
        processor = tfds.TfdsProcessor(options, trained and trained.columns)
        return Data(
            processor=processor,
            columns=processor.columns,
            task_name=processor.task_name,
        )
    if options.task_name is not None:
        name = options.task_name.lower()
        if name == _XNLI:
            processor = xnli.XnliProcessor(
                options.train_language, options.eval_language
            )
        else:
            processor = glue.PROCESSORS[name]()
        return Data(processor=processor, columns=processor.columns, task_name=name)
    columns = columns_of(
        options, trained.columns if trained else examples_module.Columns()
    )
    processor = own_tables.TableProcessor(
        train_file=options.train_file,
        eval_file=options.eval_file,
        predict_file=options.predict_file,
        columns=columns,
        labels=trained.labels if trained else options.labels,
    )
    return Data(
        processor=processor,
        columns=columns,
        task_name=trained.task_name if trained else None,
    )


def columns_of(options, known: examples_module.Columns) -> examples_module.Columns:
    """Returns the columns of own tables; `known` says what the options leave out."""
    kind, separator = known.kind, known.separator
    if options.regression:
        kind = label_kinds.REGRESSION
    elif options.label_separator is not None:
        kind, separator = label_kinds.MULTI_LABEL, options.label_separator
    return examples_module.Columns(
        text=options.text_column or known.text,
        text_b=options.text_b_column or known.text_b,
        label=options.label_column or known.label,
        kind=kind,
        separator=separator,
    )
