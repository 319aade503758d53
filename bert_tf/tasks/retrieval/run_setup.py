"""What a run works on: task, data, vocabulary and model size, checked together."""

import dataclasses
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import config as config_module
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a run needs to know before it builds a model."""

    task: retrieval_task.Task  # What task.json will say, or says already.
    # "train", "dev", "test" -> examples, for what is to be done.
    examples: dict[str, list[examples_module.RankingExample]]
    paths: dict[str, str]  # "train", "dev", "test" -> the file that they are from.
    corpus: corpus_module.Corpus | None  # None: nothing is searched.
    config: config_module.BertConfig  # Size of the model.
    vocabulary: vocabulary_module.Vocabulary  # Pieces of the model.


def prepare(
    options: retrieval_options.RunRetrievalOptions,
    *,
    progress=progress_module.silent,
) -> Inputs:
    """Returns what a run works on, all its files read.

    Training takes it from the options. Evaluating and predicting take it from
    `output_dir`, where training left it, or else from the options.

    Raises:
        OSError: a file cannot be read.
        ValueError: options, files and `output_dir` do not fit together.
        ImportError: the library of `options.search` is not installed.
    """
    search_module.check_installed(options.search)
    trains = options.do_train or options.dry_run
    is_run = files.exists(os.path.join(options.output_dir, "task.json"))
    if trains or not is_run:
        task, config, vocabulary = _from_options(options, progress)
    else:
        task, config, vocabulary = _from_run(options)
    if trains and is_run:
        _check_same_run(task, vocabulary, options.output_dir)
    if not trains:
        _check_trained(options)
    config.check_vocabulary_size(len(vocabulary))
    config.check_sequence_length(max(task.max_query_length, task.max_seq_length))
    _check_something_learns(options, config)
    examples, paths = _read_examples(options)
    corpus = None
    if options.corpus_file is not None:
        corpus = corpus_module.read_corpus(options.corpus_file)
        check_in_corpus(examples.get("dev", ()), corpus)
    return Inputs(
        task=task,
        examples=examples,
        paths=paths,
        corpus=corpus,
        config=config,
        vocabulary=vocabulary,
    )


def read_task(run_dir: str) -> retrieval_task.Task:
    """Returns the task of a training run's folder.

    Raises:
        OSError: the folder or its task.json cannot be read.
        ValueError: it is no run of this kind.
    """
    values = run_folder.RunFolder(run_dir).read_task()
    return retrieval_task.Task.from_dict(values, os.path.join(run_dir, "task.json"))


def paths_of(options) -> dict[str, str | None]:
    """Returns the paths of "train", "dev" and "test"; None where there is none."""
    given = (options.train_file, options.eval_file, options.predict_file)
    return dict(zip(("train", "dev", "test"), given, strict=True))


def check_in_corpus(examples, corpus: corpus_module.Corpus) -> None:
    """Raises ValueError for the first passage that could never be found."""
    for example in examples:
        if corpus_module.key(example.passage) not in corpus.number_of:
            raise ValueError(
                f"{example.place}: the passage of {example.guid!r} is not in "
                f"{corpus.path}; add it there, or leave the query out."
            )


def _from_options(options, progress):
    start = starting_point.of_options(options, progress=progress)
    is_bi_encoder = options.model == retrieval_task.BI_ENCODER
    known = start.source.pooling if start.source else None
    pooling = options.pooling or known or rankers.DEFAULT_POOLING
    task = retrieval_task.Task(
        model=options.model,
        max_query_length=options.max_query_length,
        max_seq_length=options.max_seq_length,
        do_lower_case=start.do_lower_case,
        pooling=pooling if is_bi_encoder else None,
        temperature=options.temperature if is_bi_encoder else None,
    )
    return task, start.config, start.vocabulary


def _from_run(options):
    run_dir = options.output_dir
    task = read_task(run_dir)
    if task.model != options.model:
        raise ValueError(
            f"{run_dir} holds a run of a {task.model}; give --model={task.model}."
        )
    return task, run_files.read_config(run_dir), run_files.read_vocabulary(run_dir)


def _read_examples(options):
    wanted = {
        "train": options.do_train or options.dry_run,
        "dev": options.do_eval or options.evaluates_in_training,
        "test": options.do_predict,
    }
    paths = {name: path for name, path in paths_of(options).items() if wanted[name]}
    examples = {
        name: examples_module.read_examples(path, name, with_passages=name != "test")
        for name, path in paths.items()
    }
    return examples, paths


def _check_same_run(task, vocabulary, output_dir):
    """Refuses to go on training one task's checkpoint with another task's data."""
    if rotation.latest(output_dir) is None:
        return
    found = read_task(output_dir).to_dict()
    wanted = task.to_dict()
    run_files.check_same_task(output_dir, found, wanted, vocabulary)


def _check_trained(options):
    """Refuses to rank with random weights; any encoder's vectors can be compared."""
    head = run_files.head_to_apply(options)
    if head is None or options.model == retrieval_task.BI_ENCODER:
        return
    # Everybody keeps a cross-encoder as a classifier with one output.
    if head.num_labels != 1:
        raise ValueError(
            f"{options.init_checkpoint} has no head that gives one score, so it was "
            "not fine-tuned to rank; train first (--do_train)."
        )


def _check_something_learns(options, config):
    """Refuses a bi-encoder, which has nothing but the encoder, with all frozen."""
    frozen = options.frozen_layers
    is_bi_encoder = options.model == retrieval_task.BI_ENCODER
    if is_bi_encoder and frozen and int(frozen) >= config.num_hidden_layers:
        raise ValueError(
            f"--frozen_layers={frozen} leaves nothing to train: a bi_encoder is the "
            f"encoder alone, and this one has {config.num_hidden_layers} layers."
        )
