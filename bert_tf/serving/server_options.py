"""Options of serve_model."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option


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
        2**18,
        minimum=1,
        help="Maximum work of a request: word pieces, estimated from its texts, that "
        "the model computes in all rows and overlapping windows.",
    )
    max_body_mb: int = option(
        2, minimum=1, maximum=64, help="Maximum size of a request's body in MiB."
    )
