"""Checks of SQuAD files before training; see `fine_tuning.checks`."""

import dataclasses
import json
import re
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.training import estimates

_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*")')


def check(
    task: Any,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
) -> estimates.Workload | None:
    """Checks the files that the options of a task name; see `Task.check`."""
    options, parts = task.options, _read(task, findings)
    if not parts:
        return None
    number_of: dict[str, int] = {}  # Equal contexts share a number, across files.
    items = {
        part: [_item(example, squad_file, number_of) for example in squad_file.examples]
        for part, squad_file in parts.items()
    }
    text_checks.check_texts(findings, items)
    for part, squad_file in parts.items():
        _check_answers(options, findings, part, squad_file)
    _check_contexts(findings, parts)
    contexts = sorted(number_of)
    tokenizer = fine_tuning_checks.checked_tokenizer(findings, start, contexts)
    counts = _pieces(tokenizer, contexts, progress=task.progress)
    rows = {
        part: _check_windows(
            options, findings, part, squad_file.examples, tokenizer, counts=counts
        )
        for part, squad_file in parts.items()
    }
    training = [rows[part] for part in rows if part.startswith("train")]
    if not training:
        return None
    lengths = np.concatenate(training)
    return estimates.Workload(
        num_examples=len(lengths),
        sequence_length=options.max_seq_length,
        padded_length=estimates.padded_length(lengths, options),
    )


def _read(task, findings):
    """Returns the readable files by part: "train", "train 2", ..., and "dev"."""
    paths = {
        "train" if number == 1 else f"train {number}": path
        for number, path in enumerate(task.train_paths(), start=1)
    }
    predicted = task.paths()["dev"]
    if predicted is not None:
        paths["dev"] = predicted
    parts = {}
    for part, path in paths.items():
        squad_file = fine_tuning_checks.read_file(
            findings,
            part,
            path,
            lambda broken_rows, path=path: question_answering_examples.read_squad(path),
        )
        if squad_file is not None:
            parts[part] = squad_file
    return parts


def _pieces(tokenizer, texts, **keywords):
    """Returns for each text its numbers of pieces and of [UNK]."""
    counts = text_checks.count_pieces(tokenizer, texts, **keywords)
    return dict(zip(texts, zip(*counts, strict=True), strict=True))


def _item(example, squad_file, number_of):
    number = number_of.setdefault(example.context.text, len(number_of))
    return text_checks.Item(
        texts=(example.question_text, f"{number}"),
        label=None,  # A question may have several correct answers.
        place=f"{squad_file.path}: question {example.qas_id}",
    )


def _check_answers(options, findings, part, squad_file):
    """Reports answers that training leaves out or refuses, and wrong ones in dev."""
    examples = squad_file.examples
    is_training = part.startswith("train")
    faults = list(
        _training_faults(options, examples) if is_training else _dev_faults(examples)
    )
    lines = _lines_of_ids(squad_file.path) if faults else {}
    for own_id, reason, is_error in faults:
        add = findings.error if is_error else findings.warning
        line = lines.get(own_id)
        place = squad_file.path if line is None else f"{squad_file.path}:{line}"
        add("answers", f"question {own_id}: {reason}", place)
    if not faults:
        findings.passed("answers", f"{part}: all occur in their contexts")
    elif is_training and sum(not bad for *_, bad in faults) == len(examples):
        findings.error(
            "answers", "no question can be used for training", squad_file.path
        )
    without = sum(_lacks_flag(options, example) for example in examples)
    if without and is_training:
        findings.error(
            "answers",
            f"{without:,} of {len(examples):,} questions have no answer; "
            "use --version_2_with_negative",
            squad_file.path,
        )
    if squad_file.is_version_2:
        share = sum(example.is_impossible for example in examples) / len(examples)
        findings.passed("answers", f"{part}: {share:.1%} of the questions have none")


def _lacks_flag(options, example):
    has_none = example.is_impossible and not example.answers
    return has_none and not options.version_2_with_negative


def _training_faults(options, examples):
    """Yields (id, description of the fault, whether it stops training)."""
    for example in examples:
        if _lacks_flag(options, example):
            continue  # All of these are reported as one finding.
        found = question_answering_examples.verdict(
            example, version_2_with_negative=options.version_2_with_negative
        )
        if found.kind == question_answering_examples.LEFT_OUT:
            yield example.qas_id, f"training leaves it out: {found.reason}", False
        elif found.kind == question_answering_examples.REFUSED:
            yield example.qas_id, found.reason, True


def _dev_faults(examples):
    """Yields (id, description, False) for answers that are not in their context."""
    for example in examples:
        for answer in () if example.is_impossible else example.answers:
            found = question_answering_examples.verdict(
                dataclasses.replace(example, answers=(answer,)),
                version_2_with_negative=False,
            )
            # Scoring does not need positions, so a missing one is not a fault.
            has_position = answer.start >= 0 or not answer.text.strip()
            if found.kind == question_answering_examples.REFUSED and has_position:
                yield example.qas_id, found.reason, False


def _lines_of_ids(path):
    """Returns the line of each question id; None if the id occurs more than once."""
    with files.open_file(path) as file:
        text = file.read()
    lines, line, end = {}, 1, 0
    # Quotation marks inside a text are escaped, so the pattern never matches there.
    for match in _ID.finditer(text):
        line += text.count("\n", end, match.start(1))
        end = match.start(1)
        own_id = json.loads(match[1])
        lines[own_id] = None if own_id in lines else line
    return lines


def _check_contexts(findings, parts):
    contexts = {
        part: {example.context.text for example in squad_file.examples}
        for part, squad_file in parts.items()
    }
    for part, found in contexts.items():
        findings.passed("contexts", f"{part}: {len(found):,} unique contexts")
    if "dev" not in contexts:
        return
    for part in contexts.keys() - {"dev"}:
        shared = contexts["dev"] & contexts[part]
        findings.judge(
            "overlap",
            f"{len(shared):,} of {len(contexts['dev']):,} contexts of dev are also in "
            f"{part}",
            is_good=not shared,
        )


def _check_windows(options, findings, part, examples, tokenizer, *, counts):
    """Checks lengths; returns the number of pieces in each row without padding."""
    questions = sorted({example.question_text for example in examples})
    by_question = _pieces(tokenizer, questions)
    in_question = np.array([by_question[one.question_text] for one in examples])
    in_context = np.array([counts[one.context.text] for one in examples])
    text_checks.check_lengths(
        findings,
        f"{part}, questions",
        in_question[:, 0],
        room=options.max_query_length,
        limit=f"--max_query_length={options.max_query_length}",
    )
    total = in_question + in_context
    text_checks.check_unknown(
        findings, part, lengths=total[:, 0], num_unknown=total[:, 1]
    )
    rows, num_cut = [], 0
    kept = np.minimum(in_question[:, 0], options.max_query_length)
    for query, pieces in zip(kept, in_context[:, 0], strict=True):
        room = options.max_seq_length - query - question_answering_windows.NUM_SPECIAL
        spans = question_answering_windows.window_spans(
            int(pieces), int(room), options.doc_stride
        )
        num_cut += len(spans) > 1
        rows += [
            query + count + question_answering_windows.NUM_SPECIAL for _, count in spans
        ]
    findings.passed(
        "length",
        f"{part}: {len(rows):,} windows of --max_seq_length={options.max_seq_length}; "
        f"{num_cut / len(examples):.1%} of the questions need several windows",
    )
    return np.array(rows)
