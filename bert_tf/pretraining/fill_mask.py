"""fill_mask: fills the masks of texts, or scores texts."""

from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import predictor as mask_predictor


def run(
    options: pretraining_options.FillMaskOptions,
) -> str:
    """Fills the masks of texts, or scores texts; returns a report.

    Raises:
        OSError: a file cannot be read.
        ValueError: a text or the checkpoint is unsuitable.
    """
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
    )
    predictor = mask_predictor.load(
        options.init_checkpoint, fine_tuning_predictor.LoadSettings(start=start)
    )
    if options.pseudo_log_likelihood:
        records = predictor.score(options.text)
    else:
        records = predictor.predict(options.text, top_k=options.top_k)
    return "\n".join(
        line
        for text, record in zip(options.text, records, strict=True)
        for line in (text, *_lines(record))
    )


def _lines(record):
    """Yields the lines of the report for one record, without its text."""
    for mask in record.get("masks", ()):
        yield "  " + "  ".join(
            f"{one['token']} {one['probability']:.3f}" for one in mask
        )
    if "pseudo_log_likelihood" in record:
        yield (
            f"  {record['pseudo_log_likelihood']:.4f}  per piece "
            f"{record['per_piece']:.4f}  per word {record['per_word']:.4f}"
        )
