"""fill_mask on one page: read texts, fill their masks or score them, report."""

import json

from bert_tf import files
from bert_tf import locks
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import predictor as mask_predictor


def run(
    options: pretraining_options.FillMaskOptions,
) -> str:
    """Fills the masks of texts, or scores texts; returns a report.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: a text or the checkpoint is unsuitable.
    """
    texts = _read_texts(options)
    if options.output_file is None:
        records = _records(options, texts)
        return "\n".join(line for record in records for line in _lines(record))
    with locks.output_file(options.output_file):
        records = _records(options, texts)
        with files.complete_or_absent(options.output_file) as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return f"The results for {len(texts)} texts are in {options.output_file}."


def _read_texts(options):
    """Returns (place for messages, text) of each line that is not blank."""
    path = options.input_file
    if path is None:
        return [("", text) for text in options.text]
    texts = [
        (f"{path}:{number}: ", line.strip())
        for number, line in enumerate(files.read_lines(path), start=1)
        if line.strip()
    ]
    if not texts:
        raise ValueError(f"{path} has no text; expected one text per line.")
    return texts


def _records(options, texts):
    """Returns the result for each text as a dict for JSON."""
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
    )
    predictor = mask_predictor.load(
        options.init_checkpoint,
        fine_tuning_predictor.LoadSettings(start=start, batch_size=options.batch_size),
    )
    scores = options.pseudo_log_likelihood
    for place, text in texts:
        try:
            (predictor.pieces if scores else predictor.masked_row)(text)
        except ValueError as error:
            raise ValueError(f"{place}{error}") from None
    plain = [text for _, text in texts]
    records = (
        predictor.score(plain)
        if scores
        else predictor.predict(plain, top_k=options.top_k)
    )
    return [{"text": t} | record for t, record in zip(plain, records, strict=True)]


def _lines(record):
    """Yields the lines of the report for one record."""
    yield record["text"]
    for mask in record.get("masks", ()):
        yield "  " + "  ".join(
            f"{one['token']} {one['probability']:.3f}" for one in mask
        )
    if "pseudo_log_likelihood" in record:
        yield (
            f"  {record['pseudo_log_likelihood']:.4f}  per piece "
            f"{record['per_piece']:.4f}  per word {record['per_word']:.4f}"
        )
