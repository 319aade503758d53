"""Loads an encoder without fine-tuning, to export it as a model for text vectors."""

from typing import cast

from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.serving import options as serving_options
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

# Checkpoints may lack the pooler: these vectors do not need it.
_UNUSED = "bert/pooler/"
# Only the loss uses it.
_TEMPERATURE = 1.0


class Encoder:
    """A bi-encoder with the weights of any checkpoint.

    Args:
        options: options with an init_checkpoint.
        progress: called during a download; see `bert_tf.progress`.

    Attributes:
        task: `retrieval.task.Task`; queries and passages are treated alike.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertBiEncoder`.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: the checkpoint lacks weights or a file that describes it.
    """

    def __init__(
        self,
        options: serving_options.ExportSavedModelOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        start = starting_point.find(
            options.init_checkpoint,
            bert_config_file=options.bert_config_file,
            vocab_file=options.vocab_file,
            do_lower_case=options.do_lower_case,
            progress=progress,
        )
        start.config.check_sequence_length(options.max_seq_length)
        self.config = start.config
        # By default, `find` returns a vocabulary or raises.
        self.vocabulary = cast(vocabulary_module.Vocabulary, start.vocabulary)
        self.task = retrieval_task.Task(
            model=retrieval_options.BI_ENCODER,
            max_query_length=options.max_seq_length,
            max_seq_length=options.max_seq_length,
            **start.tokenizer_arguments(),
            pooling=options.pooling,
            temperature=_TEMPERATURE,
        )
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, **start.tokenizer_arguments()
        )
        self.model = self.task.create_model(self.config)
        self.model.build()
        report = loading.load_source(
            self.model, cast(source_module.Source, start.source)
        )
        missing = [name for name in report.missing if not name.startswith(_UNUSED)]
        if missing:
            raise ValueError(
                f"{options.init_checkpoint} lacks {len(missing)} of the encoder's "
                f"weights, such as {missing[0]}."
            )
