"""The name of a variable in a checkpoint."""

from bert_tf.modeling import bert

# The first part of every encoder variable's name, in all of the release's models.
ENCODER_SCOPE = "bert"
# What the release's optimizer appends to a weight's name.
SLOTS = ("adam_m", "adam_v")
GLOBAL_STEP = "global_step"
# Seconds that a run with a time budget has used.
TRAIN_SECONDS = "train_seconds"


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
    """Returns {checkpoint name: variable} of all weights; builds the model first."""
    if not model.built:
        model.build()
    return {checkpoint_name(weight, model): weight for weight in model.weights}


def is_of_optimizer(name):
    """Returns whether a name in a checkpoint is a slot's or a counter's of the run."""
    is_counter = name in (GLOBAL_STEP, TRAIN_SECONDS)
    return is_counter or name.rpartition("/")[2] in SLOTS
