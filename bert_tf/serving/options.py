"""Options of export_saved_model and query_saved_model."""

import dataclasses

from bert_tf import options
from bert_tf.options import option

FROM_STDIN = "-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSavedModelOptions(options.Options):
    """Writes a trained model as a SavedModel: strings in, class names out."""

    output_dir: str = option(help="Folder of the training run.")
    export_dir: str = option(
        help="New folder for the SavedModel. TensorFlow Serving wants a number as its "
        "last part: models/topics/1."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuerySavedModelOptions(options.Options):
    """Asks an exported model, on disk or behind a server; prints a JSON line a text."""

    text: tuple[str, ...] = option(
        repeated=True, help="Text to classify; - reads a text a line from stdin."
    )
    text_b: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Second text, for a model of pairs: one for each --text. From stdin it "
        "follows the first one after a tab.",
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
            raise options.OptionError("Expected one of --export_dir and --server.")
        if self.text == (FROM_STDIN,) and self.text_b:
            raise options.OptionError(
                "--text_b does not go with --text=-; put it after a tab in each line."
            )
        if self.text_b and len(self.text_b) != len(self.text):
            raise options.OptionError(
                f"Expected a --text_b for each --text ({len(self.text)}), got "
                f"{len(self.text_b)}."
            )
