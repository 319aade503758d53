"""Checks column files before training (`check_data`)."""

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import run_setup
from bert_tf.tasks.token_classification import schemes
from bert_tf.training import estimates


def check(
    options: token_classification_options.RunNerOptions,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Checks the files and adds the findings; see `fine_tuning.checks.Check`."""
    parts = _read(options, findings)
    if not parts:
        return None
    items = {
        part: [
            text_checks.Item(
                texts=(" ".join(sentence.words),),
                label=" ".join(sentence.tags or ()),
                place=_place(options, part, sentence.lines[0]),
            )
            for sentence in sentences
        ]
        for part, sentences in parts.items()
    }
    text_checks.check_texts(findings, items)
    _check_documents(options, findings, parts)
    _check_tags(options, findings, parts)
    tokenizer = fine_tuning_checks.checked_tokenizer(
        findings, start, [item.texts[0] for found in items.values() for item in found]
    )
    lengths = {
        part: _check_pieces(
            options, findings, part, sentences, tokenizer, progress=progress
        )
        for part, sentences in parts.items()
    }
    if "train" not in parts:
        return None
    return estimates.Workload(
        num_examples=len(lengths["train"]),
        sequence_length=options.max_seq_length,
        padded_length=estimates.padded_length(lengths["train"], options),
    )


def _read(options, findings):
    """Returns the sentences of the readable files, without those with broken rows."""
    columns = examples.Columns(word=options.word_column or 0, tag=options.tag_column)
    parts: dict[str, list[examples.Sentence]] = {}
    broken: list[str] = []
    for part in ("train", "dev", "test"):
        path = run_setup.path_of(options, part)
        if not files.exists(path):
            findings.note("files", f"there is no {path}")
            continue
        try:
            if columns.tag is None:  # Use the columns of the first file for all.
                columns = examples.resolved_columns(path, columns)
            found = examples.read_sentences(path, columns, broken_rows=broken)
        except (OSError, ValueError) as error:
            findings.failure(f"reading {part}", error)
            found = []
        else:
            num_words = sum(len(sentence.words) for sentence in found)
            findings.passed("files", f"{part}: {path}, {num_words:,} words")
        findings.broken_rows(f"reading {part}", broken)
        if found:
            parts[part] = found
    return parts


def _check_documents(options, findings, parts):
    """Reports files without document starts if --document_context needs them."""
    for part, sentences in parts.items() if options.document_context else ():
        if not examples.has_documents(sentences):
            findings.error(
                "documents",
                "there is no line that starts with -DOCSTART-, which "
                "--document_context requires",
                run_setup.path_of(options, part),
            )


def _check_tags(options, findings, parts):
    """Reports the tag scheme, its violations and the balance of entity types."""
    tagged = {
        part: [sentence for sentence in sentences if sentence.tags is not None]
        for part, sentences in parts.items()
    }
    for part, sentences in parts.items():
        if part != "test" and len(tagged[part]) < len(sentences):
            findings.error("tags", f"{run_setup.path_of(options, part)} has no tags")
    tagged = {part: sentences for part, sentences in tagged.items() if sentences}
    if not tagged:
        return
    scheme = options.tag_scheme
    if scheme == "auto":
        first = next(iter(tagged.values()))
        scheme = schemes.recognize_scheme([sentence.tags for sentence in first])
    findings.note("tag scheme", scheme)
    for part, sentences in tagged.items():
        _check_scheme(options, findings, part, sentences, scheme)
    types = {
        part: [kind for sentence in sentences for kind in _types(sentence.tags, scheme)]
        for part, sentences in tagged.items()
        if part != "test"
    }
    text_checks.check_labels(
        findings,
        {part: found for part, found in types.items() if found},
        places=_first_places(options, tagged.get("dev", ()), scheme),
    )


def _first_places(options, sentences, scheme):
    """Returns where dev first has each entity type (or tag, without a scheme)."""
    places: dict[str, str] = {}
    for sentence in sentences:
        for tag, line in zip(sentence.tags, sentence.lines, strict=True):
            for kind in _types([tag], scheme):
                places.setdefault(kind, _place(options, "dev", line))
    return places


def _types(tags, scheme):
    """Returns the types of the words in entities; all tags, without a scheme."""
    if scheme == schemes.NONE:
        return tags
    return [schemes.split_tag(tag)[1] for tag in tags if tag != schemes.OUTSIDE]


def _check_scheme(options, findings, part, sentences, scheme):
    num_breaches = 0
    for sentence in sentences:
        breach = schemes.breach(sentence.tags, scheme)
        if breach is not None:
            num_breaches += 1
            line = sentence.lines[min(breach.index, len(sentence.lines) - 1)]
            findings.error(
                "tags",
                f"{breach.reason}, so the tags are not {scheme.upper()}",
                _place(options, part, line),
            )
    if not num_breaches:
        findings.passed("tags", f"{part}: all tags follow their scheme")


def _check_pieces(options, findings, part, sentences, tokenizer, *, progress):
    """Checks lengths; returns the number of pieces in each row without padding."""
    words = [word for sentence in sentences for word in sentence.words]
    unique = sorted(set(words))
    lengths, unknown = text_checks.count_pieces(tokenizer, unique, progress=progress)
    # As in training, a word without pieces becomes [UNK].
    unknown, lengths = unknown + (lengths == 0), np.maximum(lengths, 1)
    windowing = features_module.Windowing(
        max_seq_length=options.max_seq_length,
        doc_stride=options.stride,
        document_context=options.document_context,
    )
    num_pieces = dict(zip(unique, lengths, strict=True))
    rows = features_module.row_lengths(sentences, num_pieces, windowing)
    number_of = {word: number for number, word in enumerate(unique)}
    numbers = np.array([number_of[word] for word in words])
    starts = np.cumsum([0, *(len(one.words) for one in sentences)])[:-1]
    lengths = np.add.reduceat(lengths[numbers], starts)
    unknown = np.add.reduceat(unknown[numbers], starts)
    several = float(np.mean(lengths > windowing.capacity))
    findings.judge(
        "length",
        f"{part}: {several:.1%} of the sentences need several windows of "
        f"--max_seq_length={options.max_seq_length}; the longest has "
        f"{np.max(lengths)} pieces; {len(rows):,} rows in all",
        is_good=several <= text_checks.TRUNCATED_SHARE,
    )
    text_checks.check_unknown(findings, part, lengths=lengths, num_unknown=unknown)
    return rows


def _place(options, part, line):
    return f"{run_setup.path_of(options, part)}:{line}"
