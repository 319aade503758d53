"""Fine-tuning in one call: from examples in memory or in a file to a trained model.

    import bert_tf

    train = [("Stir the soup.", "cooking"), ("It will rain.", "weather"), ...]
    model = bert_tf.fine_tune.classify(
        train, "bert-base-uncased", "runs/topics", validation=0.1
    )
    model.predict(["Snow is coming."])

| function | tool | task |
|---|---|---|
| `classify` | run_classifier | a class, several classes or a number for each text |
| `tag` | run_ner | a tag for each word |
| `answer_questions` | run_squad | the part of a context that answers a question |
| `choose` | run_swag | one of several endings of a text |
| `retrieve` | run_retrieval | passages for a query |

Each function runs the workflow of the tool and takes its other flags as keyword
arguments. The run in `output_dir` is the same as one of the tool: the same call resumes
it, and it can be evaluated, exported, and loaded with `bert_tf.load`. Examples in
memory are written to the folder `data` of the run.
"""

import os
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.fine_tune import run as run_module
from bert_tf.tasks.retrieval import options as retrieval_options

__all__ = ["answer_questions", "choose", "classify", "retrieve", "tag"]


def classify(
    train: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    *,
    validation: Any = None,
    progress: progress_module.Progress | None = None,
    **options: Any,
) -> Any:
    """Trains a classifier of texts, or of pairs of texts; returns its predictor.

    Args:
        train: the labeled examples, as one of these:

            * a list of (text, label) or (text, text_b, label);
            * a tuple of columns: (texts, labels) or (texts, texts_b, labels);
            * a pandas DataFrame, a dictionary of columns, or a list of dictionaries,
              with the columns `text`, `label` and, for pairs, `text_b`; or those that
              `text_column`, `label_column` and `text_b_column` name;
            * the path of such a table: .csv, .tsv or .jsonl.

            A label is a text or a number; a list of labels means that a text can have
            several. With `regression=True` the labels are numbers to predict.
        init_checkpoint: a checkpoint in any format, or the name of a released model.
            None: random weights, with `bert_config_file` and `vocab_file`.
        output_dir: folder of the run. The same call resumes or reloads the run.
        validation: share of `train` to evaluate on, such as 0.1, or other examples in
            any of the forms of `train`. None: the run is not evaluated.
        progress: see `bert_tf.progress`. None: shows progress and scores on standard
            error; `bert_tf.progress.silent` shows nothing.
        **options: other flags of run_classifier, such as `num_train_epochs`,
            `train_batch_size`, `learning_rate` and `max_seq_length`.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `predict` takes texts, or pairs of
        texts; its `scores` are those of the validation.

    Raises:
        TypeError: run_classifier has no such flag.
        ValueError, OSError: options, data or checkpoint are invalid.

    Example:
        >>> frame = pandas.read_csv("reviews.csv")
        >>> model = bert_tf.fine_tune.classify(
        ...     frame, "bert-base-uncased", "runs/reviews", validation=0.1,
        ...     text_column="review", label_column="stars", num_train_epochs=2,
        ... )
        >>> model.predict(["I would buy it again."])
        [{'label': '5', 'probabilities': {'1': 0.01, ...}}]
    """
    return run_module.fine_tune(
        "classify",
        "classification",
        train=train,
        validation=validation,
        init_checkpoint=init_checkpoint,
        output_dir=output_dir,
        progress=progress,
        options=options,
    )


def tag(
    train: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    *,
    validation: Any = None,
    progress: progress_module.Progress | None = None,
    **options: Any,
) -> Any:
    """Trains a model that gives every word a tag; returns its predictor.

    Args:
        train: the tagged sentences, as one of these:

            * a list of (words, tags), two lists of the same length;
            * a tuple of columns: a list with the words of each sentence, and a list
              with its tags;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with one
              row per sentence (the lists `words` and `tags`) or one row per word
              (`sentence`, `word` and `tag`; a sentence is a group of consecutive rows
              with the same value of `sentence`);
            * the path of such a table: .csv, .tsv or .jsonl;
            * the path of a column file as in CoNLL, with any other extension. The words
              are in the first column, the tags in the last one.

        init_checkpoint, output_dir, progress: as for `classify`.
        validation: share of the sentences to evaluate on, or other sentences.
        **options: other flags of run_ner, such as `tag_scheme`.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `predict` takes sentences, as texts
        or as lists of words.

    Raises:
        TypeError, ValueError, OSError: as for `classify`.
    """
    return run_module.fine_tune(
        "tag",
        "token_classification",
        train=train,
        validation=validation,
        init_checkpoint=init_checkpoint,
        output_dir=output_dir,
        progress=progress,
        options=options,
    )


def answer_questions(
    train: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    *,
    validation: Any = None,
    progress: progress_module.Progress | None = None,
    **options: Any,
) -> Any:
    """Trains a model that finds answers in a text; returns its predictor.

    Args:
        train: the questions, as one of these:

            * a list of (question, context, answer), or a tuple of these columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with
              `question`, `context`, and `answer` or `answers`; see
              `bert_tf.tasks.question_answering.examples.squad_of`;
            * the path of such a table: .csv, .tsv or .jsonl;
            * the content of a SQuAD file, or its path.

            An answer is a part of its context. An empty one means that the context
            does not answer the question; this requires `version_2_with_negative=True`.
        init_checkpoint, output_dir, progress: as for `classify`.
        validation: share of the questions to evaluate on, or other questions. All
            questions about a context are on the same side.
        **options: other flags of run_squad, such as `doc_stride`.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `predict` takes (question, context)
        pairs.

    Raises:
        TypeError, ValueError, OSError: as for `classify`.
    """
    return run_module.fine_tune(
        "answer_questions",
        "question_answering",
        train=train,
        validation=validation,
        init_checkpoint=init_checkpoint,
        output_dir=output_dir,
        progress=progress,
        options=options,
    )


def choose(
    train: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    *,
    validation: Any = None,
    progress: progress_module.Progress | None = None,
    **options: Any,
) -> Any:
    """Trains a model that chooses one of several endings; returns its predictor.

    Args:
        train: the examples, as one of these:

            * a list of (start, endings, label), where `endings` is a list of texts and
              `label` is the number of the right one, from 0; or a tuple of columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with the
              columns `startphrase`, `label`, and `endings` (lists) or `ending0`,
              `ending1` and so on; or those that `start_column`, `label_column` and
              `ending_columns` name;
            * the path of such a table: .csv, .tsv or .jsonl.

        init_checkpoint, output_dir, progress: as for `classify`.
        validation: share of the examples to evaluate on, or other examples.
        **options: other flags of run_swag.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `predict` takes (start, endings)
        pairs.

    Raises:
        TypeError, ValueError, OSError: as for `classify`.
    """
    return run_module.fine_tune(
        "choose",
        "multiple_choice",
        train=train,
        validation=validation,
        init_checkpoint=init_checkpoint,
        output_dir=output_dir,
        progress=progress,
        options=options,
    )


def retrieve(
    train: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    *,
    corpus: Any = None,
    validation: Any = None,
    model: str = retrieval_options.BI_ENCODER,
    progress: progress_module.Progress | None = None,
    **options: Any,
) -> Any:
    """Trains a model that finds passages for queries; returns its predictor.

    Args:
        train: queries with a passage that answers them, as one of these:

            * a list of (query, passage) or (query, passage, negatives), where
              `negatives` is a list of wrong passages; or a tuple of columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with the
              columns `query`, `passage` and optionally `negatives`;
            * the path of such a table (.csv, .tsv or .jsonl), or of a SQuAD file.

        init_checkpoint, output_dir, progress: as for `classify`.
        corpus: the passages to search: a list of texts, a table with `passage` and
            optionally `id`, or the path of a file as in run_retrieval. None: the
            passages of `train` and `validation`.
        validation: share of `train` to evaluate on, or other queries with passages from
            the corpus.
        model: "bi_encoder", which searches the corpus, or "cross_encoder", which ranks
            the passages that it is given. Evaluating a cross_encoder requires
            `retrieve_with`, the run of a bi_encoder.
        **options: other flags of run_retrieval, such as `pooling`.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `predict` takes queries, or (query,
        passages) pairs for a cross_encoder.

    Raises:
        TypeError, ValueError, OSError: as for `classify`.
    """
    return run_module.fine_tune(
        "retrieve",
        "retrieval",
        train=train,
        validation=validation,
        init_checkpoint=init_checkpoint,
        output_dir=output_dir,
        progress=progress,
        options=options,
        set_by_call={"model": model},
        more_data={"corpus": corpus},
    )
