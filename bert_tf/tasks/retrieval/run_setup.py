"""Reads and checks everything that a retrieval run needs: queries and corpus."""

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints import text_encoding
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.modeling import config as config_module
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.training import result_files

# Options that a finished run fixes. The temperature only affects training.
_FIXED = ("max_query_length", "max_seq_length", "do_lower_case", "pooling")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup(fine_tuning_run_setup.RunSetup):
    """Everything a run needs to know before it builds a model."""

    task: retrieval_task.Task
    # By set: "train", "dev", "test". Only the sets that the run needs.
    examples: dict[str, list[examples_module.RankingExample]]
    paths: dict[str, str]  # The file of each set.
    corpus: corpus_module.Corpus | None  # None if none was given.

    def require_corpus(self) -> corpus_module.Corpus:
        """Returns the corpus, which the options guarantee for a run that searches."""
        return typing.cast(corpus_module.Corpus, self.corpus)


def prepare(
    options: retrieval_options.RunRetrievalOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> RunSetup:
    """Reads all files of a run and checks them against each other.

    Evaluation and prediction take the task from the run's `task.json` if there is one.
    Otherwise it comes from the options.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
        ImportError: `options.search` needs a package that is not installed.
    """
    search_module.check_installed(options.search)
    trained = fine_tuning_run_setup.trained_task(options, retrieval_task.Task)
    if trained is not None:
        _check_same_model(options, trained)
        fine_tuning_run_setup.check_given_values(options, trained, _FIXED)
    start = fine_tuning_run_setup.find_start(options, trained, progress=progress)
    paths = {
        name: path
        for name, path in paths_of(options).items()
        if name in options.sets_to_read and path is not None
    }
    corpus = None
    if options.corpus_file is not None:
        corpus = corpus_module.read_corpus(options.corpus_file)
    setup = RunSetup(
        task=trained or _task_of_options(options, start),
        start=start,
        examples={
            name: examples_module.read_examples(
                path, name, with_passages=name != "test"
            )
            for name, path in paths.items()
        },
        paths=paths,
        corpus=corpus,
        data_sets=_data_sets(options),
    )
    _check_head(options, setup)
    fine_tuning_run_setup.check(
        setup,
        options,
        longest_sequence=max(setup.task.max_query_length, setup.task.max_seq_length),
    )
    _check_something_learns(options, setup.config)
    if corpus is not None:
        check_in_corpus(setup.examples.get("dev", ()), corpus)
    return setup


def paths_of(
    options: retrieval_options.RunRetrievalOptions,
) -> dict[str, str | None]:
    """Returns the paths of "train", "dev" and "test"; None for a file not given."""
    return {
        "train": options.train_file,
        "dev": options.eval_file,
        "test": options.predict_file,
    }


def _data_sets(
    options: retrieval_options.RunRetrievalOptions,
) -> dict[str, result_files.DataSet]:
    """Returns the data that the options name, by set, with the corpus to search."""
    corpus = () if options.corpus_file is None else (options.corpus_file,)
    return {
        name: result_files.file_data_set(path, *corpus)
        for name, path in paths_of(options).items()
        if path is not None
    }


def check_in_corpus(
    examples: Iterable[examples_module.RankingExample], corpus: corpus_module.Corpus
) -> None:
    """Raises a ValueError if the passage of an example is not in the corpus.

    No search could find it, so the scores would be too low without any warning.
    """
    for example in examples:
        if corpus_module.key(example.require_passage()) not in corpus.number_of:
            raise ValueError(
                f"{example.place}: the passage of {example.guid!r} is not in "
                f"{corpus.path}; add it, or remove the query."
            )


def _check_same_model(
    options: retrieval_options.RunRetrievalOptions,
    trained: retrieval_task.Task,
) -> None:
    if trained.model != options.model:
        raise ValueError(
            f"{options.output_dir} is the run of a {trained.model}; use "
            f"--model={trained.model}."
        )


def with_lengths(
    options: retrieval_options.RunRetrievalOptions, text: text_encoding.TextEncoding
) -> retrieval_options.RunRetrievalOptions:
    """Returns options whose lengths are the checkpoint's unless flags were given.

    Training pads every query to the maximum length, so it ignores a checkpoint's.
    """
    query_length = None if options.trains else text.max_seq_length
    return dataclasses.replace(
        options,
        max_query_length=options.max_query_length or query_length,
        max_seq_length=options.max_seq_length or text.max_seq_length,
    )


def _task_of_options(
    options: retrieval_options.RunRetrievalOptions,
    start: starting_point.StartingPoint,
) -> retrieval_task.Task:
    text = start.source.text if start.source else text_encoding.TextEncoding()
    known = with_lengths(options, text)
    is_bi_encoder = options.model == retrieval_options.BI_ENCODER
    of_model = _bi_encoder_fields if is_bi_encoder else _cross_encoder_fields
    task = retrieval_task.Task(
        model=options.model,
        max_query_length=known.query_limit,
        max_seq_length=known.sequence_limit,
        **start.tokenizer_arguments(),
        prompts=dict(text.prompts),
        default_prompt_name=text.default_prompt_name,
    )
    return dataclasses.replace(task, **of_model(options, text))


def _bi_encoder_fields(
    options: retrieval_options.RunRetrievalOptions,
    text: text_encoding.TextEncoding,
) -> dict[str, Any]:
    """Returns the fields of a bi-encoder's task.

    Training always learns cosines. A finished encoder keeps its own similarity.
    """
    if text.output_activation is not None and not options.trains:
        raise ValueError(
            f"{options.init_checkpoint} scores pairs of texts and has no vectors; use "
            "--model=cross_encoder, or train first (--do_train)."
        )
    path = str(options.init_checkpoint)
    return {
        "pooling": options.pooling or text.pooling or rankers.DEFAULT_POOLING,
        "temperature": options.temperature,
        "normalize": options.trains or retrieval_task.is_cosine(text, path),
    }


def _cross_encoder_fields(
    options: retrieval_options.RunRetrievalOptions,
    text: text_encoding.TextEncoding,
) -> dict[str, Any]:
    """Returns the fields of a cross-encoder's task.

    An external ranker truncates the longer text of a pair, whichever it is.
    """
    fields: dict[str, Any] = {"output_activation": text.output_activation}
    is_new = options.trains or text.output_activation is None
    if not is_new and options.max_query_length is None:
        fields["max_query_length"] = with_lengths(options, text).sequence_limit
        fields["longer_keeps_more"] = True
    return fields


def _check_head(
    options: retrieval_options.RunRetrievalOptions, setup: RunSetup
) -> None:
    """Refuses to rank with an untrained head; a bi-encoder needs no head."""
    head = fine_tuning_run_setup.head_to_apply(options, setup.source)
    if head is None or setup.task.is_bi_encoder:
        return
    # Every library stores a cross-encoder as a classifier with one output.
    if head.num_labels != 1:
        raise ValueError(
            f"{options.init_checkpoint} has no head with a single score, so it was "
            "not fine-tuned to rank; train first (--do_train)."
        )


def _check_something_learns(
    options: retrieval_options.RunRetrievalOptions, config: config_module.BertConfig
) -> None:
    """Refuses to freeze all layers of a bi-encoder, which has no other weights."""
    frozen = options.frozen_layers
    is_bi_encoder = options.model == retrieval_options.BI_ENCODER
    if is_bi_encoder and frozen and int(frozen) >= config.num_hidden_layers:
        raise ValueError(
            f"--frozen_layers={frozen} leaves nothing to train: all weights of a "
            f"bi_encoder belong to the encoder, which has {config.num_hidden_layers} "
            "layers."
        )
