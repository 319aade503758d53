"""The data of a run: GLUE, XNLI, TensorFlow Datasets, or the user's own tables."""

import collections
import functools
import itertools
import json
import re
from collections.abc import Sequence

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import hold_out
from bert_tf.data import label_names
from bert_tf.data import named_datasets
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.training import result_files

_XNLI = "xnli"
# All runs hold out the same examples, whatever their random_seed, so that their scores
# can be compared.
_HOLD_OUT_SEED = 12345
# As many different labels that occur once each are no classes.
_MANY_CLASSES = 10


def select(
    options: classification_options.RunClassifierOptions,
    trained: classification_predictions.Record | None = None,
) -> examples_module.DataProcessor:
    """Returns the reader of the data that the options name.

    Args:
        options: of the run.
        trained: record of the model to apply. It supplies columns and labels that the
            options omit. None: the run trains a new model.

    Raises:
        ImportError, OSError, ValueError: the TensorFlow dataset cannot be read.
    """
    processor: examples_module.DataProcessor
    task_name = trained.task_name if trained else None
    if options.tfds_name is not None:
        return _tfds_processor(options, trained)
    elif options.task_name is None:
        processor = TableProcessor(
            train_file=options.train_file,
            eval_file=options.eval_file,
            predict_file=options.predict_file,
            columns=_columns(options, trained),
            labels=trained.labels if trained else options.labels,
            validation_split=options.validation_split,
        )
    elif (task_name := options.task_name.lower()) == _XNLI:
        processor = glue.XnliProcessor(options.language)
    else:
        processor = glue.PROCESSORS[task_name]()
    processor.task_name = task_name
    return processor


def _columns(options, trained):
    """Returns the columns of the user's tables; default: the trained model's."""
    known = trained.columns if trained else examples_module.Columns()
    kind, separator = known.kind, known.separator
    if options.regression:
        kind = checkpoint_heads.REGRESSION
    elif options.label_separator is not None:
        kind, separator = checkpoint_heads.MULTI_LABEL, options.label_separator
    return examples_module.Columns(
        text=options.text_column or known.text,
        text_b=options.text_b_column or known.text_b,
        label=options.label_column or known.label,
        kind=kind,
        separator=separator,
    )


def identities(
    options: classification_options.RunClassifierOptions,
    processor: examples_module.DataProcessor,
) -> dict[str, result_files.DataSet]:
    """Returns the identity of the data of each set; see `Task.data_sets`."""
    data_sets = {}
    paths = processor.get_files(str(options.data_dir))
    for part in ("train", "dev", "test"):
        of_part = [path for name, path in paths.items() if name.startswith(part)]
        if part == "train":
            of_part = processor.get_train_files(str(options.data_dir))
        if options.task_name is not None:
            languages = processor.get_eval_languages() if part != "train" else ()
            if languages and part not in options.sets_to_read:
                continue  # A later command chooses the languages.
            name = "_".join([str(processor.task_name), *sorted(languages)])
        elif of_part:
            name = result_files.stem(of_part[0])
            if part == "dev" and options.validation_split:
                name += "_held_out"
        else:
            continue
        data_sets[part] = result_files.DataSet(name=name, paths=tuple(of_part))
    return data_sets


def check_applied(
    options: classification_options.RunClassifierOptions,
    processor: examples_module.DataProcessor,
    record: classification_predictions.Record,
) -> None:
    """Checks that data has the texts and labels that a model was trained on.

    Args:
        options: of the run that applies the model.
        processor: of the data.
        record: of the model.

    Raises:
        ValueError: texts or labels differ, or other examples are held out.
    """
    run_dir, columns = options.output_dir, processor.columns
    if options.labels and options.labels != record.labels:
        raise ValueError(
            f"--labels={','.join(options.labels)}, but the model in {run_dir} was "
            f"trained with {','.join(record.labels)}; omit --labels."
        )
    if (columns.text_b is not None) != record.is_pair:
        kind = "pairs of texts" if record.is_pair else "single texts"
        raise ValueError(
            f"The model in {run_dir} was trained on {kind}, but the data has another "
            "form; change the data (see --task_name and --text_b_column)."
        )
    if columns.kind != record.label_kind:
        raise ValueError(
            f"The model in {run_dir} was trained on {record.label_kind} labels, but "
            f"the data has {columns.kind} labels."
        )
    labels = processor.get_labels()
    if list(record.labels) != labels:
        raise ValueError(
            f"The model in {run_dir} has the classes {', '.join(record.labels)}, but "
            f"the data has {', '.join(labels)}; choose data with the same classes."
        )
    if not isinstance(processor, TableProcessor) or not options.validation_split:
        return
    if processor.get_held_out_fingerprint() != record.validation_sha256:
        share = record.validation_split
        trained_with = f"with --validation_split={share:g}" if share else "without it"
        raise ValueError(
            f"--validation_split={options.validation_split:g} of {options.train_file}: "
            f"the model in {run_dir} was trained {trained_with}, or the file has "
            "changed; evaluate a file that was not used in training (--eval_file)."
        )


class TableProcessor(examples_module.DataProcessor):
    """Reads the user's own tables. `data_dir` is not used.

    Args:
        train_file: for training. See `tables.read_table` for the file formats.
        eval_file: for evaluation.
        predict_file: to predict. It needs no label column.
        columns: names of the columns. Default: those of `examples.Columns`.
        labels: class names. Default: the classes in the training file, sorted.
        validation_split: share of the training file that serves as the evaluation set,
            instead of `eval_file`. 0: none.
    """

    def __init__(
        self,
        *,
        train_file: str | None = None,
        eval_file: str | None = None,
        predict_file: str | None = None,
        columns: examples_module.Columns | None = None,
        labels: Sequence[str] = (),
        validation_split: float = 0.0,
    ):
        self._files = {
            "train": train_file,
            "dev": train_file if validation_split else eval_file,
            "test": predict_file,
        }
        self.columns = columns or examples_module.Columns()
        self._known_labels = list(labels)
        self._validation_split = validation_split

    def get_train_examples(
        self, data_dir: str = ""
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the training file that are not held out."""
        if not self._validation_split:
            return list(self._train_examples)
        return list(itertools.compress(self._train_examples, ~self._is_held_out))

    def get_dev_examples(
        self, data_dir: str = ""
    ) -> list[examples_module.InputExample]:
        """Returns the examples of the evaluation file, or those that are held out."""
        if self._validation_split:
            return list(itertools.compress(self._train_examples, self._is_held_out))
        return self.read(data_dir, "dev")

    def read(self, data_dir: str, part: str) -> list[examples_module.InputExample]:
        """Returns all examples of a file."""
        return self._read(part, () if part == "test" else self.get_labels())

    def _read(self, part, labels):
        path, columns = self._files[part], self.columns
        if path is None:
            raise ValueError(f"There is no {part} file; pass the path of a table.")
        try:
            return examples_module.read_examples(
                path,
                columns.without_label() if part == "test" else columns,
                part,
                labels=labels,
                broken_rows=self.broken_rows,
            )
        except tables.MissingColumnError as error:
            raise ValueError(
                f"{error} Choose columns with --text_column, --text_b_column and "
                "--label_column."
            ) from None

    def get_labels(self) -> list[str]:
        """Returns the class names; an empty list for regression.

        Raises:
            ValueError: the training file has fewer than two classes, or neither a
                training file nor class names are given.
        """
        if self.columns.kind == checkpoint_heads.REGRESSION:
            return []
        if self._known_labels:
            return list(self._known_labels)
        if self._files["train"] is None:
            raise ValueError(
                "The class names are unknown; pass --labels in the order of the "
                "model's outputs, or --train_file."
            )
        return list(self._collected_labels)

    def get_files(self, data_dir: str = "") -> dict[str, str]:
        """Returns the given paths, by set name."""
        return {part: path for part, path in self._files.items() if path is not None}

    def get_held_out_fingerprint(self) -> str | None:
        """Returns the checksum of the texts that are held out; None if none are."""
        if not self._validation_split:
            return None
        return hold_out.fingerprint([e.texts for e in self.get_dev_examples()])

    @functools.cached_property
    def _train_examples(self):
        examples = self._read("train", self._known_labels)
        if not self._known_labels and self.columns.kind != checkpoint_heads.REGRESSION:
            label_names.check_spellings(
                str(self._files["train"]),
                self._label_counts(examples),
                "Correct them, or list all classes in --labels.",
            )
        return examples

    @functools.cached_property
    def _is_held_out(self):
        examples = self._train_examples
        labels = [example.label for example in examples]
        return hold_out.held_out(
            [example.texts for example in examples],
            _strata(labels, self.columns.kind),
            share=self._validation_split,
            seed=_HOLD_OUT_SEED,
        )

    @functools.cached_property
    def _collected_labels(self):
        counts = self._label_counts(self._train_examples)
        labels = sorted(counts)
        if all(map(_is_number, counts)):
            labels.sort(key=float)  # 2 before 10.
        if len(labels) < 2:
            problem = f"the labels contain {len(labels)} different classes"
            if labels and self.columns.kind == checkpoint_heads.SINGLE_LABEL:
                problem = f"all rows have the label {labels[0]!r}"
            raise ValueError(
                f"{self._files['train']}: {problem}; expected at least two classes."
            )
        if self.columns.kind == checkpoint_heads.SINGLE_LABEL:
            _check_classes(str(self._files["train"]), counts)
        return labels

    def _label_counts(self, examples):
        """Returns the number of examples of each class name."""
        return collections.Counter(
            name
            for example in examples
            for name in examples_module.names_in(example.label, self.columns.separator)
        )


def _check_classes(path, counts):
    """Refuses labels that are probably no classes, unless --labels lists them."""
    problem = None
    if len(counts) >= _MANY_CLASSES and max(counts.values()) == 1:
        problem = f"each of the {len(counts):,} labels occurs once"
    elif any(map(_is_fraction, counts)) and all(map(_is_number, counts)):
        first = min(filter(_is_fraction, counts))
        problem = f"all labels are numbers, such as {first}"
    if problem:
        raise ValueError(
            f"{path}: {problem}; expected classes. Pass --regression to predict "
            "numbers, choose another --label_column, or list the classes in --labels."
        )


def _is_number(label):
    return re.fullmatch(r"[-+]?\d*\.?\d+", label) is not None


def _is_fraction(label):
    return _is_number(label) and not float(label).is_integer()


def _strata(labels, kind):
    """Returns the index of each label or, for regression, the decile."""
    if kind != checkpoint_heads.REGRESSION:
        number_of = {label: number for number, label in enumerate(sorted(set(labels)))}
        return [number_of[label] for label in labels]
    values = [examples_module.number_in(label) for label in labels]
    return (np.argsort(np.argsort(values)) * 10 // len(labels)).tolist()


def _tfds_columns(options, data, known):
    """Returns the columns of a TensorFlow dataset; `known` are a trained model's."""
    name, features = str(options.tfds_name), data.features
    text, text_b = options.text_column, options.text_b_column
    if text is None:
        texts_of_glue = named_datasets.declared(glue.TFDS_TEXTS, name)
        text, text_b = texts_of_glue or _known_text(name, features, known)
    label = options.label_column or (known.label if known else None) or "label"
    for column in filter(None, (text, text_b, label)):
        if column not in features:
            raise ValueError(
                f"--tfds_name={name} has no column {column}; the columns are "
                f"{', '.join(features)}."
            )
    kind = checkpoint_heads.SINGLE_LABEL
    if np.dtype(features[label].np_dtype).kind == "f":
        kind = checkpoint_heads.REGRESSION
    elif not getattr(features[label], "names", None):
        raise ValueError(
            f"--tfds_name={name}: the column {label} has no class names; choose "
            "another column with --label_column."
        )
    return examples_module.Columns(text=text, text_b=text_b, label=label, kind=kind)


def _tfds_processor(options, trained):
    """Returns the reader of a TensorFlow dataset, each split of which is a table."""
    data = named_datasets.open_data_set(str(options.tfds_name), options.data_dir)
    columns = _tfds_columns(options, data, trained.columns if trained else None)
    train, dev, test = (
        named_datasets.part_file(
            options,
            name,
            _table_lines,
            ".classes.jsonl",
            is_needed=name in options.sets_to_read,
        )
        for name in ("train", "dev", "test")
    )
    processor = TableProcessor(
        train_file=train,
        eval_file=dev,
        predict_file=test,
        columns=columns,
        labels=getattr(data.features[columns.label], "names", ()),
    )
    if named_datasets.declared(glue.TFDS_TEXTS, str(options.tfds_name)):
        config = str(options.tfds_name).partition(":")[0].rpartition("/")[2]
        processor.task_name = glue.TFDS_TASK_NAMES.get(config, config)
    return processor


def _table_lines(data, split):
    """Yields the lines of a table whose column `id` names the examples."""
    for record in data.records(split):
        if "idx" in record:
            record["id"] = record["idx"]
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _known_text(name, features, known):
    if known is not None and known.text in features:
        return known.text, known.text_b
    texts = [
        key for key, feature in features.items() if feature.np_dtype in (object, str)
    ]
    if len(texts) != 1:
        raise ValueError(
            f"--tfds_name={name}: expected one column of text, got "
            f"{', '.join(texts) or 'none'}; choose with --text_column, and with "
            "--text_b_column for pairs."
        )
    return texts[0], None
