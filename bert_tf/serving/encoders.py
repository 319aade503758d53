"""An encoder that nobody fine-tuned, ready to make vectors of texts."""

from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.tokenization import in_graph

# Of a checkpoint without a pooler, which no vector is made with.
_UNUSED = "bert/pooler/"
# Only a loss reads it.
_TEMPERATURE = 1.0


class Encoder:
    """A bi-encoder with the weights of any checkpoint.

    Args:
        options: `serving.options.ExportSavedModelOptions` with an init_checkpoint.
        progress: told about a download.

    Attributes:
        task: `retrieval.task.Task`; queries and passages are read alike.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertBiEncoder`.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: it lacks weights, or what belongs to it is not found.
    """

    def __init__(self, options, *, progress=progress_module.silent):
        start = starting_point.find(
            options.init_checkpoint,
            bert_config_file=options.bert_config_file,
            vocab_file=options.vocab_file,
            do_lower_case=options.do_lower_case,
            progress=progress,
        )
        start.config.check_sequence_length(options.max_seq_length)
        self.config, self.vocabulary = start.config, start.vocabulary
        self.task = retrieval_task.Task(
            model=retrieval_options.BI_ENCODER,
            max_query_length=options.max_seq_length,
            max_seq_length=options.max_seq_length,
            do_lower_case=start.do_lower_case,
            pooling=options.pooling,
            temperature=_TEMPERATURE,
        )
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, do_lower_case=start.do_lower_case
        )
        self.model = self.task.create_model(self.config)
        self.model.build()
        report = loading.load_source(self.model, start.source)
        missing = [name for name in report.missing if not name.startswith(_UNUSED)]
        if missing:
            raise ValueError(
                f"{options.init_checkpoint} lacks {len(missing)} of the encoder's "
                f"weights, the first {missing[0]}."
            )
