"""Options of export_saved_model, query_saved_model and serve_model."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import OptionError
from bert_tf.options import option

QUERIES_PER_CALL = 32
TIMEOUT_SECONDS = 60.0
SAVED_MODEL = "saved_model"
ID_FORMATS = ("litert", "onnx", "openvino")
# The dtypes of each format: of the computation, or of the stored weights.
DTYPES = {
    SAVED_MODEL: fine_tuning_options.DTYPES,
    "litert": ("float32", "float16", "int8"),
    "onnx": ("float32", "int8"),
    "openvino": ("float32", "float16", "int8"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSavedModelOptions(kinds.CompletionOptions):
    """Exports a model as a SavedModel that takes text and returns answers.

    With --format, exports a LiteRT, ONNX or OpenVINO model that takes word piece ids.

    --output_dir exports the model of any task's training run; a pretraining run fills
    the [MASK]s of texts. --init_checkpoint exports an encoder that returns one vector
    per text: the checkpoint's own, or else the mean over the pieces, scaled to length
    1. A cross-encoder of sentence-transformers returns the score of a pair of texts.
    With --head, --init_checkpoint exports a model that fills [MASK]s, or one with
    another head of the checkpoint.
    """

    export_dir: str = option(
        help="Folder of the model, as in models/topics: the SavedModel becomes its "
        "next version, models/topics/1 at first. Or the folder of a new version, whose "
        "name is a number."
    )
    output_dir: str | None = option(None, help="Folder of the training run to export.")
    format: str = option(
        SAVED_MODEL,
        choices=(SAVED_MODEL, *ID_FORMATS),
        help="Format of the model. litert (model.tflite), onnx (model.onnx) and "
        "openvino (model.xml) take word piece ids instead of text; the vocabulary is "
        "stored next to them. Not for models that fill [MASK]s. onnx and openvino need "
        "pip install 'bert_tf[onnx]' or 'bert_tf[openvino]', and litert Keras 3.13 or "
        "newer. To run a LiteRT model: pip install ai-edge-litert.",
    )
    init_checkpoint: str | None = option(
        None,
        help="Checkpoint in any format, or the name of a released model; exports its "
        "encoder instead of a run.",
    )
    head: str | None = option(
        None,
        choices=(kinds.Head.ENCODER, kinds.Head.MASKED_LM, *kinds.TASK_HEADS),
        help="With --init_checkpoint, what to export: encoder; masked_lm, which "
        "returns the most likely words for each [MASK] of a text; or the head of a "
        "fine-tuned checkpoint. Default: the encoder or ranker.",
        group="model",
    )
    text_pairs: bool = option(
        False,
        help="With --head=classification, the model classifies pairs of texts: it "
        "takes text and text_b. A checkpoint does not say this itself.",
        group="model",
    )
    top_k: int | None = option(
        None,
        minimum=1,
        help="Candidates per [MASK] that a pretraining run or masked_lm returns. "
        "Default: 5.",
        group="model",
    )
    pooling: str | None = option(
        None,
        choices=fine_tuning_options.POOLINGS,
        help="With --init_checkpoint, the vector of a text: that of [CLS], or the mean "
        "or the maximum over its pieces. Default: the checkpoint's setting, or mean.",
        group="model",
    )
    max_seq_length: int | None = option(
        None,
        minimum=3,
        help="With --init_checkpoint, the maximum number of word pieces in a text, "
        "including [CLS] and [SEP]; longer texts are truncated. Default: the "
        "checkpoint's setting, or 128. masked_lm does not truncate texts: longer ones "
        "have the status too_long. Its default is the model's number of positions.",
        group="model",
    )
    dtype: str = option(
        "float32",
        choices=(*fine_tuning_options.DTYPES, "int8"),
        help="For a SavedModel: data type of the computation. bfloat16 and float16 are "
        "faster on processors that support them; weights and answers stay in float32. "
        "Every call casts the weights, so short requests can be slower in bfloat16. "
        "For the other formats: data type of the stored weights. float16 (not onnx) "
        "halves the file, int8 divides it by four; with onnx and int8, an answer also "
        "depends on the other rows of its batch.",
        group="advanced",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.output_dir is None) == (self.init_checkpoint is None):
            raise OptionError(
                "Expected either --output_dir (a training run) or --init_checkpoint "
                "(an encoder)."
            )
        self._check_format()
        if self.output_dir is None:
            self._check_head()
            return
        for declaration in options_module.declarations(type(self)):
            name = declaration.name
            is_of_checkpoint = declaration.group == "model" and name != "top_k"
            if is_of_checkpoint and getattr(self, name) != declaration.default:
                raise OptionError(
                    f"--{name} needs --init_checkpoint; a run in --output_dir has its "
                    "own value."
                )

    def _check_format(self):
        if self.dtype not in DTYPES[self.format]:
            raise OptionError(
                f"--dtype={self.dtype} does not exist for --format={self.format}; "
                f"expected one of {', '.join(DTYPES[self.format])}."
            )
        if self.format == SAVED_MODEL:
            return
        if self.head == kinds.Head.MASKED_LM:
            raise OptionError(
                f"--head={kinds.Head.MASKED_LM} needs --format={SAVED_MODEL}: the "
                "candidates for a [MASK] are text."
            )
        if self.top_k is not None:
            raise OptionError(
                f"--top_k needs --format={SAVED_MODEL}; omit one of them."
            )

    def _check_head(self):
        if self.head != kinds.Head.MASKED_LM and self.top_k is not None:
            raise OptionError(
                f"--top_k={self.top_k} needs --head=masked_lm: an encoder does not "
                "fill masks."
            )
        if self.head not in (None, kinds.Head.ENCODER) and self.pooling is not None:
            raise OptionError(
                f"--pooling={self.pooling} has no effect with --head={self.head}; omit "
                "one of them."
            )
        if self.text_pairs and self.head != kinds.Head.CLASSIFICATION:
            raise OptionError("--text_pairs needs --head=classification.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuerySavedModelOptions(options_module.Options):
    """Queries an exported model, on disk or on a server; prints JSON lines.

    Classifiers, taggers and masked-word models take --text; models of pairs also one
    --text_b for each --text; question answering models --question and --context.
    Multiple choice models take an --input_file.
    """

    text: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Text to classify or tag, or with [MASK]s to fill; repeat the flag for "
        "several texts.",
    )
    text_b: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Second text, for models of pairs: one for each --text.",
    )
    question: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Question to answer; repeat the flag for several questions.",
    )
    context: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Text that contains the answer: one for each --question, or one for all.",
    )
    export_dir: str | None = option(None, help="SavedModel written by bert_tf export.")
    server: str | None = option(
        None,
        help="URL of a model on a server, instead of --export_dir: "
        "http://localhost:8501/v1/models/NAME, or with https, of TensorFlow Serving "
        "or bert_tf serve. /versions/2 or /labels/stable at the end selects a version.",
    )
    input_file: str | None = option(
        None,
        help="File of queries, instead of --text. Each line is a JSON object with the "
        'inputs of the model: {"text": ...}, {"text": ..., "text_b": ...}, '
        '{"text": ..., "endings": [...]} or {"question": ..., "context": ...}. Other '
        "fields, such as an id, are copied to the answer.",
    )
    timeout_seconds: float = option(
        options_module.implicit(TIMEOUT_SECONDS),
        minimum=0.001,
        maximum=1e9,  # Sockets have no room for ten times as much.
        help="Seconds to wait for an answer of the server.",
        group="advanced",
    )
    header: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Header of every call to the server, such as 'Authorization: Bearer "
        "TOKEN'; repeat the flag for several.",
        group="advanced",
    )
    signature: str = option(
        "serving_default",
        help="Signature to call. A bi-encoder has query, for queries, whose prompt and "
        "maximum length can differ from those of passages.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.export_dir is None) == (self.server is None):
            raise OptionError("Expected either --export_dir or --server.")
        if sum(map(bool, (self.text, self.question, self.input_file))) != 1:
            raise OptionError(
                "Expected either --text, or --question with --context, or --input_file."
            )
        if "-" in self.text:
            raise OptionError(
                "--text=- does not read standard input; pass a file of JSON lines as "
                "--input_file."
            )
        is_timed = options_module.is_given(self.timeout_seconds)
        for name, is_given in (("timeout_seconds", is_timed), ("header", self.header)):
            if self.server is None and is_given:
                raise OptionError(
                    f"--{name} needs --server; it has no effect on a SavedModel on "
                    "disk."
                )
        for name, other in (("text", "text_b"), ("question", "context")):
            count, given = len(getattr(self, name)), len(getattr(self, other))
            is_for_all = other == "context" and count and given == 1
            if given != count and not is_for_all and (given or name == "question"):
                raise OptionError(
                    f"Expected one --{other} for each --{name} ({count}), got {given}."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeModelOptions(options_module.Options):
    """Serves an exported model over HTTP, without Docker.

    Speaks the REST API of TensorFlow Serving (predict, metadata, status) and, for
    models that return vectors, OpenAI's /v1/embeddings. / has a page to try the model,
    /livez and /readyz are for probes, and /metrics has counters for Prometheus. Needs
    the extra server: pip install 'bert_tf[server]'.

    Requests must have the token in the environment variable BERT_TF_SERVER_TOKEN, or in
    the file that BERT_TF_SERVER_TOKEN_FILE names, if one of them is set. There is no
    TLS: outside your own machine, put a reverse proxy in front.
    """

    export_dir: str = option(
        help="SavedModel written by bert_tf export, or the folder with its "
        "versions. Of a folder, the newest version is served, also one that is "
        "exported while the server runs."
    )
    host: str = option(
        "127.0.0.1",
        choices=("127.0.0.1", "0.0.0.0"),
        help="Address to listen on. 127.0.0.1 accepts only connections of this "
        "machine, 0.0.0.0 all IPv4 connections.",
    )
    port: int = option(8501, minimum=1024, maximum=65535, help="Port to listen on.")
    allowed_host: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Name by which clients reach the server, such as models.example.org, "
        "besides localhost and its address; repeat the flag for several. Requests for "
        "other hosts get status 403, which protects against DNS rebinding.",
    )
    backend: str = option(
        fine_tuning_options.TENSORFLOW,
        choices=fine_tuning_options.BACKENDS,
        help="Library that runs the model. openvino is faster on Intel processors "
        "and requires pip install 'bert_tf[openvino]'.",
    )
    queue_timeout_seconds: float = option(
        60.0,
        minimum=1,
        help="Maximum time from the arrival of a request to its answer.",
    )
    max_positions: int = option(
        2**17,
        minimum=1,
        help="Maximum work of a request: word pieces, estimated from its texts, that "
        "the model computes in all rows and overlapping windows.",
    )
    max_body_mb: int = option(
        2, minimum=1, maximum=64, help="Maximum size of a request's body in MiB."
    )
    log_format: str = option(
        "text",
        choices=("text", "json"),
        help="Form of the log, which has one line per request.",
        group="advanced",
    )
