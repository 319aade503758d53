"""A task's model as the options of its training want it."""

# What matrix units of GPUs and TPUs like sizes to be.
VOCABULARY_MULTIPLE = 64


def build_model(create_model, options):
    """Returns a built model; call it in the strategy's scope.

    Args:
        create_model: function without arguments that returns a `heads.TaskModel`.
        options: `TrainingOptions`; of it pad_vocabulary and recompute_layers.
    """
    model = create_model()
    if options.pad_vocabulary:
        model.bert.embeddings.rows_multiple = VOCABULARY_MULTIPLE
    model.build()
    model.bert.encoder.recomputes_layers = options.recompute_layers
    return model
