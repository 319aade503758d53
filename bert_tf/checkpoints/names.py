"""The name of a variable in a checkpoint."""

from bert_tf.checkpoints import cut_table
from bert_tf.modeling import bert

# The first part of every encoder variable's name, in all of the release's models.
ENCODER_SCOPE = "bert"
WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
# What the release's optimizer, and LAMB, append to a weight's name.
SLOTS = ("adam_m", "adam_v", "lamb_m", "lamb_v")
GLOBAL_STEP = "global_step"
# Seconds that a run with a time budget has used.
TRAIN_SECONDS = "train_seconds"
# Of a run in float16: what its loss is multiplied by, and the steps since it changed.
LOSS_SCALE = "loss_scale"
LOSS_SCALE_STEPS = "loss_scale_steps"
_COUNTERS = (GLOBAL_STEP, TRAIN_SECONDS, LOSS_SCALE, LOSS_SCALE_STEPS)


def checkpoint_name(variable, model):
    """Returns a variable's name in a checkpoint: its path without the model's name.

    A bare `BertModel` is an encoder: its own name, whatever it is, becomes "bert".

    Args:
        variable: a Keras variable of `model`.
        model: `heads.TaskModel` or `bert.BertModel`, built.

    Returns:
        str, such as "bert/encoder/layer_0/attention/self/query/kernel".
    """
    path = variable.path.removeprefix(f"{model.path}/")
    return f"{ENCODER_SCOPE}/{path}" if isinstance(model, bert.BertModel) else path


def checkpoint_variables(model):
    """Returns {checkpoint name: variable} of all weights; builds the model first.

    A table that is padded (`Embeddings.rows_multiple`) is a `cut_table.CutTable`.
    """
    if not model.built:
        model.build()
    found = {checkpoint_name(weight, model): weight for weight in model.weights}
    words, num_words = found.get(WORD_EMBEDDINGS), model.config.vocab_size
    if words is not None and words.shape[0] > num_words:
        found[WORD_EMBEDDINGS] = cut_table.CutTable(words, num_words)
    return found


def is_of_optimizer(name):
    """Returns whether a name in a checkpoint is a slot's or a counter's of the run."""
    return name in _COUNTERS or name.rpartition("/")[2] in SLOTS
