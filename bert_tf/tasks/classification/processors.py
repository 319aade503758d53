"""Selects the processor that reads the data of a run."""

import dataclasses

from bert_tf.tasks.classification import data_options
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import own_tables
from bert_tf.tasks.classification import task as task_module
from bert_tf.tasks.classification import tfds
from bert_tf.tasks.classification import tfds_xnli
from bert_tf.tasks.classification import xnli

_XNLI = "xnli"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """The data of a run."""

    processor: examples_module.DataProcessor
    columns: examples_module.Columns  # Of the tables.
    task_name: str | None  # Determines the scores. None for your own data.


def data_of(
    options: data_options.DataOptions, trained: task_module.Task | None = None
) -> Data:
    """Returns the processor of the data that the options name.

    Args:
        options: of the run.
        trained: task of the model to apply. It supplies columns and labels that the
            options omit. None: the run trains a new model.

    Raises:
        ValueError, OSError: the TensorFlow dataset cannot be read.
    """
    processor: examples_module.DataProcessor
    if options.tfds_name is not None and data_options.is_xnli(options.tfds_name):
        processor = tfds_xnli.TfdsXnliProcessor(options)
        return Data(processor=processor, columns=processor.columns, task_name=_XNLI)
    if options.tfds_name is not None:
        processor = tfds.TfdsProcessor(options, trained.columns if trained else None)
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
        validation_split=options.validation_split,
    )
    return Data(
        processor=processor,
        columns=columns,
        task_name=trained.task_name if trained else None,
    )


def columns_of(
    options: data_options.DataOptions, known: examples_module.Columns
) -> examples_module.Columns:
    """Returns the columns of your own tables; `known` supplies those without a flag."""
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
