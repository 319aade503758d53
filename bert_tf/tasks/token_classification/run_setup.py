"""What a run works on: task, sentences, vocabulary and model size, checked together."""

import dataclasses
import os
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import config as config_module
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import labels as labels_module
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import plain_text
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import task as task_module
from bert_tf.tasks.token_classification import true_casing
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder

FILES = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a run needs to know before it builds a model."""

    task: task_module.Task  # What task.json will say, or says already.
    config: config_module.BertConfig  # Size of the model.
    vocabulary: vocabulary_module.Vocabulary  # Pieces of the model.
    # "train", "dev", "test", as far as they are needed -> the file's sentences.
    sentences: Mapping[str, Sequence[examples.Sentence]]


def prepare(
    options: token_classification_options.RunNerOptions,
    *,
    progress=progress_module.silent,
) -> Inputs:
    """Returns what a run works on.

    Training takes it from the options. Evaluating and predicting take it from
    `output_dir`, where training left it, or else from the options. All files are
    read and checked, so that a mistake in the last one shows before the training.

    Args:
        options: what to do, and with what.
        progress: told about a download.

    Raises:
        OSError: a file cannot be read.
        ValueError: options, files and `output_dir` do not fit together.
    """
    trains = options.do_train or options.dry_run
    if not trains:
        _check_trained(options)
    if trains or not _is_run(options.output_dir):
        inputs = _from_options(options, progress)
    else:
        inputs = _from_run(options)
    if trains and _is_run(options.output_dir):
        _check_same_run(inputs, options.output_dir)
    inputs.config.check_vocabulary_size(len(inputs.vocabulary))
    inputs.config.check_sequence_length(inputs.task.max_seq_length)
    sentences = dict(inputs.sentences)
    for set_type in _sets_needed(options):
        if set_type not in sentences:
            sentences[set_type] = _read(options, set_type, inputs.task.columns)
        _check(options, inputs.task, set_type, sentences[set_type])
    return dataclasses.replace(inputs, sentences=sentences)


def path_of(options: token_classification_options.RunNerOptions, set_type: str) -> str:
    """Returns the path of the train, dev or test file."""
    if is_plain_text(options, set_type):
        return options.predict_file
    return os.path.join(options.data_dir, FILES[set_type])


def is_plain_text(
    options: token_classification_options.RunNerOptions, set_type: str
) -> bool:
    """Returns whether sentences come from a text, and not from a column file."""
    return set_type == "test" and options.predict_file is not None


def read_task(run_dir: str) -> task_module.Task:
    """Returns the task of a training run's folder.

    Raises:
        OSError: the folder or its task.json cannot be read.
        ValueError: it is no run of this kind.
    """
    values = run_folder.RunFolder(run_dir).read_task()
    return task_module.Task.from_dict(values, os.path.join(run_dir, "task.json"))


def _is_run(output_dir):
    return files.exists(os.path.join(output_dir, "task.json"))


def _sets_needed(options):
    if options.do_train or options.dry_run:
        yield "train"
    if options.do_eval or (options.do_train and options.eval_every_steps):
        yield "dev"
    if options.do_predict:
        yield "test"


def _read(options, set_type, columns):
    path = path_of(options, set_type)
    if is_plain_text(options, set_type):
        return plain_text.read_sentences(path)
    return examples.read_sentences(path, columns)


def _from_options(options, progress):
    start = starting_point.of_options(options, progress=progress)
    columns = _columns(options)
    if options.do_train or options.dry_run:
        path = path_of(options, "train")
        sentences = {"train": examples.read_sentences(path, columns)}
        tags = [sentence.tags for sentence in sentences["train"]]
        scheme = _scheme(options, schemes.recognized, tags)
        labels = labels_module.given(options) or labels_module.of_training(
            path, tags, scheme
        )
    else:
        sentences = {}
        labels = _known_labels(options, start)
        scheme = _scheme(options, schemes.of_labels, labels)
    task = task_module.Task(
        labels=tuple(labels),
        tag_scheme=scheme,
        max_seq_length=options.max_seq_length,
        doc_stride=options.stride,
        do_lower_case=start.do_lower_case,
        document_context=options.document_context,
        feature_based=options.feature_based,
        word_column=columns.word,
        tag_column=columns.word + 1 if columns.tag is None else columns.tag,
        true_cases=_true_cases(options, sentences),
    )
    return Inputs(
        task=task,
        config=start.config,
        vocabulary=start.vocabulary,
        sentences=sentences,
    )


def _columns(options):
    columns = examples.Columns(word=options.word_column or 0, tag=options.tag_column)
    if not (options.do_train or options.dry_run):
        if options.do_eval:
            return examples.resolved_columns(path_of(options, "dev"), columns)
        if columns.tag is None and not options.predict_file:
            raise ValueError(
                f"{options.output_dir} holds no task.json, so it is not known where "
                "test.txt has or lacks its tags; give --tag_column."
            )
        return columns
    return examples.resolved_columns(path_of(options, "train"), columns)


def _scheme(options, recognized, tags):
    """Returns the scheme of --tag_scheme, or the one that is recognized in tags."""
    if options.tag_scheme != token_classification_options.AUTO:
        return options.tag_scheme
    return recognized(tags)


def _known_labels(options, start):
    labels = labels_module.given(options) or start.source.head.labels
    if not labels:
        raise ValueError(
            f"The tags of {options.init_checkpoint} are not known; give --labels, in "
            "the order of its outputs."
        )
    return labels


def _true_cases(options, sentences):
    if not options.true_case:
        return None
    if "train" not in sentences:
        raise ValueError(
            f"--true_case learns from train.txt, and {options.output_dir} holds no "
            "training run; leave it out, or train."
        )
    return true_casing.learned_cases(one.words for one in sentences["train"])


def _from_run(options):
    run_dir = options.output_dir
    task = read_task(run_dir)
    labels = labels_module.given(options)
    if labels and labels != task.labels:
        raise ValueError(
            f"--labels={','.join(labels)}, but the model in {run_dir} was "
            f"trained with {','.join(task.labels)}; leave --labels out."
        )
    given = {
        name: getattr(options, name)
        for name in ("word_column", "tag_column")
        if getattr(options, name) is not None
    }
    return Inputs(
        task=dataclasses.replace(task, **given),
        config=run_files.read_config(run_dir),
        vocabulary=run_files.read_vocabulary(run_dir),
        sentences={},
    )


def _check(options, task, set_type, sentences):
    """Checks the sentences of a file against the task."""
    path = path_of(options, set_type)
    if is_plain_text(options, set_type):
        return
    if task.document_context and not examples.has_documents(sentences):
        raise ValueError(
            f"{path} has no line that starts with -DOCSTART-, so it is not known which "
            "sentences belong together; leave --document_context out."
        )
    # The tags of a file to predict are for the scores only, if it has them.
    if set_type != "test":
        examples.check_tags(path, sentences, task.tag_scheme)
        examples.check_known(path, sentences, task.labels)


def _check_same_run(inputs, output_dir):
    """Refuses to go on training one task's checkpoint with another task's data."""
    if rotation.latest(output_dir) is None:
        return
    found = read_task(output_dir).to_dict()
    wanted = inputs.task.to_dict()
    run_files.check_same_task(output_dir, found, wanted, inputs.vocabulary)


def _check_trained(options):
    """Refuses to evaluate or to predict with a head that was never trained."""
    head = run_files.head_to_apply(options)
    if head is None:
        return
    # Release's names alone do not tell a tag head from a classifier's.
    may_be_tags = head.kind == "classification" and not head.is_known
    if head.kind != task_module.KIND and not may_be_tags:
        raise ValueError(
            f"{options.init_checkpoint} has no tag head, but that of the kind "
            f"{head.kind!r}, so it was not fine-tuned to tag words; train first "
            "(--do_train)."
        )
