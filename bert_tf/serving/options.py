"""Options of export_saved_model and query_saved_model."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

FROM_STDIN = "-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSavedModelOptions(options_module.Options):
    """Writes a model as a SavedModel: text in, answers out, of any task's run.

    With --init_checkpoint in place of a run's --output_dir: text in, vectors of an
    encoder out, of length 1.
    """

    export_dir: str = option(
        help="New folder for the SavedModel. TensorFlow Serving wants a number as its "
        "last part: models/topics/1."
    )
    output_dir: str | None = option(None, help="Folder of the training run.")
    init_checkpoint: str | None = option(
        None, help="Or a checkpoint of any format, whose encoder gives vectors."
    )
    pooling: str = option(
        "mean",
        choices=fine_tuning_options.POOLINGS,
        help="What the vector of a text is: that of [CLS], or the mean or the maximum "
        "of its pieces'.",
        group="model",
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most pieces of a text with [CLS] and [SEP].",
        group="model",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's size; default: that of init_checkpoint.",
        group="model",
    )
    vocab_file: str | None = option(
        None, help="Vocabulary of the checkpoint; default: its own.", group="model"
    )
    do_lower_case: bool | None = option(
        None, help="Default: as init_checkpoint says, or else True.", group="model"
    )

    def __post_init__(self):
        super().__post_init__()
        if (self.output_dir is None) == (self.init_checkpoint is None):
            raise options_module.OptionError(
                "Expected --output_dir of a run, or --init_checkpoint of an encoder."
            )
        if self.output_dir is None:
            return
        for field in dataclasses.fields(self):
            is_given = getattr(self, field.name) != field.default
            if is_given and field.name not in ("export_dir", "output_dir"):
                raise options_module.OptionError(
                    f"--{field.name} goes with --init_checkpoint; the run in "
                    "--output_dir says it itself."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuerySavedModelOptions(options_module.Options):
    """Asks an exported model, on disk or behind a server; prints a JSON line an answer.

    Classifiers and taggers are asked a --text, models of pairs with a --text_b each,
    multiple choice models one --text with its --ending's, and question answering models
    a --question with its --context.
    """

    text: tuple[str, ...] = option(
        (), repeated=True, help="Text to classify; - reads a text a line from stdin."
    )
    text_b: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Second text, for a model of pairs: one for each --text. From stdin it "
        "follows the first one after a tab.",
    )
    ending: tuple[str, ...] = option(
        (),
        repeated=True,
        help="An ending of the one --text, for a multiple choice model: two or more.",
    )
    question: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Question to answer; - reads a question, a tab and a context a line from "
        "stdin.",
    )
    context: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Text that holds the answer: one for each --question, or one for all.",
    )
    export_dir: str | None = option(
        None, help="SavedModel that export_saved_model wrote."
    )
    server: str | None = option(
        None,
        help="Or a model behind TensorFlow Serving's REST interface: "
        "http://localhost:8501/v1/models/NAME.",
    )

    def __post_init__(self):
        super().__post_init__()
        if (self.export_dir is None) == (self.server is None):
            raise options_module.OptionError(
                "Expected one of --export_dir and --server."
            )
        if bool(self.text) == bool(self.question):
            raise options_module.OptionError(
                "Expected --text, or --question with --context, and not both."
            )
        self._check_companion("text_b", "text")
        self._check_companion("context", "question")
        if self.ending and (len(self.text) != 1 or len(self.ending) < 2 or self.text_b):
            raise options_module.OptionError(
                "Expected two or more --ending with one --text and no --text_b, got "
                f"{len(self.ending)} with {len(self.text)}."
            )
        if self.ending and self.text == (FROM_STDIN,):
            raise options_module.OptionError("--ending does not go with --text=-.")
        if self.question and not self.context and self.question != (FROM_STDIN,):
            raise options_module.OptionError(
                "--question needs the --context of its answer."
            )

    def _check_companion(self, companion, name):
        values, given = getattr(self, companion), getattr(self, name)
        if not values:
            return
        if given == (FROM_STDIN,):
            raise options_module.OptionError(
                f"--{companion} does not go with --{name}=-; put it after a tab in "
                "each line."
            )
        is_one_for_all = companion == "context" and len(values) == 1 and given
        if len(values) != len(given) and not is_one_for_all:
            raise options_module.OptionError(
                f"Expected a --{companion} for each --{name} ({len(given)}), got "
                f"{len(values)}."
            )
