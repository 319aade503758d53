"""Fine-tuning in one call: from examples in memory or in a file to a trained model.

    import bert_tf

    train = [("Stir the soup.", "cooking"), ("It will rain.", "weather"), ...]
    model = bert_tf.fine_tune.classify(
        train, "bert-base-uncased", "runs/topics", validation=0.1
    )
    model.predict(["Snow is coming."])

| function | tool | task |
|---|---|---|
| `classify` | bert_tf classify | a class, several classes or a number for each text |
| `tag` | bert_tf tag | a tag for each word |
| `answer_questions` | bert_tf answer | the part of a context that answers a question |
| `choose` | bert_tf choose | one of several endings of a text |
| `retrieve` | bert_tf retrieve | passages for a query |

Each function runs the workflow of the tool and takes its other flags as keyword
arguments. The run in `output_dir` is the same as one of the tool: the same call resumes
it, and it can be evaluated, exported, and loaded with `bert_tf.load`. Examples in
memory are written to the folder `data` of the run.
"""

import contextlib
import difflib
import itertools
import logging
import os
import re
import sys
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf import recipe
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import kinds
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks
from bert_tf.serving import predictors

logger = logging.getLogger(__name__)

__all__ = ["answer_questions", "choose", "classify", "retrieve", "tag"]

# Flags that say what a tool does and on which data. The call sets them.
_SET_BY_CALL = frozenset(
    (
        *("init_checkpoint", "output_dir", "do_train", "do_eval", "do_predict"),
        *("check", "dry_run", "data_dir", "train_file", "eval_file", "predict_file"),
        *("corpus_file", "validation_split", "task_name", "tfds_name"),
        *("language", "word_column", "tag_column"),
        "top_k",
    )
)
# The arguments that replace these flags in Python calls.
_ARGUMENTS = {
    "train_file": "train",
    "eval_file": "validation",
    "predict_file": "validation",
    "validation_split": "validation",
    "corpus_file": "corpus",
}
_FLAG = re.compile(r"(?<![\w-])--([a-z]\w*)")


class Run:
    """Options and data of the run of a call.

    Args:
        options_class: record of the tool's options.
        values: the options of the call, by name.

    Attributes:
        values: the options, by name. `Task.give_data` adds those of its data.
    """

    def __init__(
        self,
        options_class: type[options_module.Options],
        values: Mapping[str, Any],
    ):
        self.values = {**values, "do_train": True}
        self._options_class = options_class
        self._contents: dict[str, bytes] = {}
        self._training: list[str] = []

    def option(self, name: str) -> Any:
        """Returns the value of an option, or its default."""
        declared = options_module.declarations(self._options_class)
        return self.values.get(name, {d.name: d.default for d in declared}[name])

    def use_casing_of_checkpoint(self) -> None:
        """Sets `do_lower_case` unless it is given or the tool asks the checkpoint.

        Raises:
            OSError, ValueError: it is not a checkpoint, or cannot be opened.
        """
        path = self.values["init_checkpoint"]
        is_given = "do_lower_case" in self.values
        if path is None or is_given or self.option("do_lower_case") is None:
            return
        do_lower_case = formats.open_source(os.fspath(path)).do_lower_case
        if do_lower_case is not None:
            self.values["do_lower_case"] = do_lower_case

    def add_file(self, name: str, content: bytes, *, trains: bool = False) -> str:
        """Adds a file to the data of the run, written when it starts; returns its path.

        Args:
            name: of the file.
            content: its bytes.
            trains: whether the run trains on it.
        """
        folder = os.path.join(self.values["output_dir"], given_data.FOLDER)
        path = os.path.join(folder, name)
        self._contents[path] = content
        if trains:
            self._training.append(path)
        return path

    def divided(
        self, rows: Sequence[Any], texts: Sequence[Sequence[str]], share: float
    ) -> tuple[list[Any], list[Any]]:
        """Returns the rows to train on and those to evaluate on.

        Args:
            rows: N examples.
            texts: the texts of each example. Examples with the same first text are on
                the same side.
            share: share of the rows to evaluate on.

        Raises:
            ValueError: see `text_checks.held_out`.
        """
        seed = self.option("random_seed")
        chosen = text_checks.held_out(texts, [0] * len(rows), share=share, seed=seed)
        held_out = list(itertools.compress(rows, chosen))
        return list(itertools.compress(rows, ~chosen)), held_out

    def predictor(self) -> Any:
        """Trains and evaluates; returns the predictor of the run."""
        chosen = recipe.choose(self._options_class, self.values)
        logger.info("Chosen settings: %s", recipe.shown(chosen))
        options = self._options_class(**self.values | chosen)
        folder = self.values["output_dir"]
        given_data.write(folder, self._contents, self._training)
        logger.info("%s", fine_tuning_run.run(options))
        return predictors.load(folder)


def _function(
    name: str, task: str, doc: str, *, more_data: Sequence[str] = ()
) -> Callable[..., Any]:
    """Returns the function that fine-tunes for a task, a key of `tasks.TASKS`.

    Args:
        name: of the function.
        task: a key of `tasks.TASKS`.
        doc: what the function does, and its arguments besides those of all functions.
        more_data: names of further arguments of `Task.give_data`.
    """

    def function(
        train: Any,
        init_checkpoint: str | os.PathLike[str] | None = None,
        output_dir: str | os.PathLike[str] = "",
        *,
        validation: Any = None,
        **options: Any,
    ) -> Any:
        declaration, options_class = tasks.declaration(task), tasks.options_class(task)
        data = {key: options.pop(key) for key in more_data if key in options}
        _check_names(name, options, options_class)
        _check_types(init_checkpoint, output_dir)
        values = {
            **options,
            "init_checkpoint": init_checkpoint,
            "output_dir": os.fspath(output_dir),
        }
        with contextlib.ExitStack() as stack:
            if not progress_module.is_set():
                stack.enter_context(progress_module.shown_with_log(sys.stderr))
            try:
                run = Run(options_class, values)
                run.use_casing_of_checkpoint()
                declaration.give_data(run, train, validation, **data)
                return declaration.prepare_predictor(run.predictor(), run)
            except (ValueError, OSError, ImportError) as error:
                if len(error.args) == 1 and isinstance(error.args[0], str):
                    # A message about flags becomes one about arguments.
                    error.args = (_FLAG.sub(_argument_of, error.args[0]),)
                raise

    function.__name__ = function.__qualname__ = name
    arguments, heading, example = doc.partition("    Example:")
    function.__doc__ = arguments.rstrip() + _OF_ALL_FUNCTIONS + heading + example
    return function


def _check_names(name, options, options_class):
    declared = {one.name for one in options_module.declarations(options_class)}
    for option in options:
        if option in _SET_BY_CALL:
            instead = _ARGUMENTS.get(option)
            advice = f"pass {instead} instead" if instead else f"omit {option}"
            raise TypeError(
                f"{name}() sets {option} itself and has no such argument; {advice}."
            )
        if option not in declared:
            names = sorted(declared - _SET_BY_CALL)
            near = [one for one in names if len(option) > 3 and option in one]
            # batch_size is taken for train_batch_size, not for eval_batch_size.
            near.sort(key=lambda name: not name.startswith("train_"))
            near += difflib.get_close_matches(option, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see its tool's flags."
            raise TypeError(f"{name}() has no argument {option!r}; {hint}")


def _check_types(init_checkpoint, output_dir):
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"Keras uses {keras.backend.backend()}, but training needs TensorFlow; set "
            "KERAS_BACKEND=tensorflow in the environment before Keras is imported."
        )
    if not isinstance(init_checkpoint, str | os.PathLike | None):
        raise ValueError(
            f"init_checkpoint is {init_checkpoint!r:.60}; expected the path of a "
            "checkpoint, the name of a model, or None."
        )
    if not isinstance(output_dir, str | os.PathLike) or not os.fspath(output_dir):
        raise ValueError(
            f"output_dir is {output_dir!r:.60}; expected the path of a folder."
        )


def _argument_of(flag):
    return _ARGUMENTS.get(flag[1], flag[1])


_OF_ALL_FUNCTIONS = """

    Further arguments:
        init_checkpoint: a checkpoint in any format, or the name of a released model.
            None: the small model in the package, bert-tf-mini; or random weights, with
            `bert_config_file` and `vocab_file`.
        output_dir: folder of the run. The same call resumes or reloads the run.
        validation: share of `train` to evaluate on, such as 0.1, or other examples in
            any of the forms of `train`. None: the run is not evaluated.
        **options: other flags of the tool, such as `num_train_epochs`,
            `train_batch_size`, `learning_rate` and `max_seq_length`. Those that you
            leave out are chosen as by the tool's `--recipe=auto`.

    Shows progress and scores on standard error. In a block of
    `with bert_tf.progress.reporting_to(...):`, that reporter is used instead; None
    shows nothing.

    Returns:
        What `bert_tf.load(output_dir)` returns. Its `scores` are those of the
        validation.

    Raises:
        TypeError: the tool has no such flag.
        ValueError, OSError: options, data or checkpoint are invalid.

"""

classify = _function(
    "classify",
    kinds.Head.CLASSIFICATION,
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

    Example:
        >>> frame = pandas.read_csv("reviews.csv")
        >>> model = bert_tf.fine_tune.classify(
        ...     frame, "bert-base-uncased", "runs/reviews", validation=0.1,
        ...     text_column="review", label_column="stars", num_train_epochs=2,
        ... )
        >>> model.predict(["I would buy it again."])
        [{'label': '5', 'probabilities': {'1': 0.01, ...}}]
    """,
)

tag = _function(
    "tag",
    kinds.Head.TOKEN_CLASSIFICATION,
    """Trains a model that gives every word a tag; returns its predictor.

    Args:
        train: the tagged sentences, as one of these:

            * a list of (words, tags), two lists of the same length;
            * a tuple of columns: a list with the words of each sentence, and a list
              with its tags;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with the
              lists `words` and `tags` of each sentence;
            * the path of such a table (.jsonl);
            * the path of a column file as in CoNLL, with any other extension. The words
              are in the first column, the tags in the last one.
    """,
)

answer_questions = _function(
    "answer_questions",
    kinds.Head.QUESTION_ANSWERING,
    """Trains a model that finds answers in a text; returns its predictor.

    Args:
        train: the questions, as one of these:

            * a list of (question, context, answer), or a tuple of these columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with
              `question`, `context`, and `answer` or `answers`, which may have the form
              of the data sets of Hugging Face;
            * the path of such a table: .csv, .tsv or .jsonl;
            * the content of a SQuAD file, or its path.

            An answer is a part of its context. An empty one means that the context
            does not answer the question; this requires `version_2_with_negative=True`.
            A share for `validation` keeps all questions about a context on one side.
    """,
)

choose = _function(
    "choose",
    kinds.Head.MULTIPLE_CHOICE,
    """Trains a model that chooses one of several endings; returns its predictor.

    Args:
        train: the examples, as one of these:

            * a list of (start, endings, label), where `endings` is a list of texts and
              `label` is the number of the right one, from 0; or a tuple of columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with the
              columns `startphrase`, `label`, and `endings` (lists) or `ending0`,
              `ending1` and so on; `label_column` names another column of labels;
            * the path of such a table: .csv, .tsv or .jsonl.
    """,
)

retrieve = _function(
    "retrieve",
    tasks.RETRIEVAL,
    """Trains a model that finds passages for queries; returns its predictor.

    Args:
        train: queries with a passage that answers them, as one of these:

            * a list of (query, passage) or (query, passage, negatives), where
              `negatives` is a list of wrong passages; or a tuple of columns;
            * a DataFrame, a dictionary of columns, or a list of dictionaries, with the
              columns `query`, `passage` and optionally `negatives`;
            * the path of such a table: .csv, .tsv or .jsonl.

        corpus: the passages to search: a list of texts, a table with `passage` and
            optionally `id`, or the path of a file as in bert_tf retrieve. Default: the
            passages of `train` and `validation`.
        model: "bi_encoder" (default), which searches the corpus, or "cross_encoder",
            which ranks the passages that it is given. Evaluating a cross_encoder
            requires `retrieve_with`, the run of a bi_encoder.
    """,
    more_data=("corpus",),
)
