import collections

import numpy as np
import pytest

from bert_tf.data import text_checks
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def item(text, label=None, place="x:1"):
    return text_checks.Item(texts=(text,), label=label, place=place)


def findings_of(function, *args, **kwargs):
    findings = text_checks.Findings()
    function(findings, *args, **kwargs)
    return [f"{found.severity} {found.check}" for found in findings.all], findings


def test_texts_are_counted_and_those_in_the_training_data_have_a_place():
    train = [item("It rains.", "rain", "t:2"), item("Sun", "sun", "t:3")]
    dev = [item("a cloud", "rain", "d:2"), item(" SUN", "sun", "d:3")]
    _, findings = findings_of(text_checks.check_texts, {"train": train, "dev": dev})
    assert [str(found) for found in findings.all] == [
        "ok      examples: 2 in train, 2 in dev",
        # Case and spaces make no difference.
        "warning overlap: 1 of 2 texts of dev are also in train (such as d:3 as t:3); "
        "scores on them are too high",
    ]


def test_a_label_of_dev_that_train_lacks_is_an_error():
    parts = {"train": ["a", "b", "b", "b"], "dev": ["a", "c"]}
    _, findings = findings_of(text_checks.check_labels, parts)
    assert [str(found) for found in findings.all] == [
        "ok      labels: train: b 75.0% (3), a 25.0% (1)",
        "ok      labels: dev: a 50.0% (1), c 50.0% (1)",
        "error   labels: 'c' occurs 1 times in dev but not in train",
    ]


@pytest.mark.parametrize(
    "lengths, severity", [([5] * 20, "ok"), ([5] * 18 + [7] * 2, "warning")]
)
def test_what_is_cut_is_a_share_of_the_examples(lengths, severity):
    found, findings = findings_of(
        text_checks.check_lengths, "train", lengths, room=6, limit="--max_seq_length=8"
    )
    assert found == [f"{severity} length"]
    assert "longer than --max_seq_length=8 and" in findings.all[0].message


def test_unknown_pieces_are_counted():
    tokenizer = full.FullTokenizer(vocabulary_module.Vocabulary([*SPECIAL, "a", "##b"]))
    lengths, unknown = text_checks.count_pieces(tokenizer, ["ab a", "a x", ""])
    assert lengths.tolist() == [3, 2, 0]
    assert unknown.tolist() == [0, 1, 0]
    found, findings = findings_of(
        text_checks.check_unknown, "dev", lengths=lengths, num_unknown=unknown
    )
    assert found == ["warning unknown words"]
    assert findings.all[0].message == (
        "dev: 20.00% of the pieces are [UNK], in 33.3% of the examples"
    )


@pytest.mark.parametrize(
    "tokens, do_lower_case, severity",
    [
        (["rain"], True, "ok"),
        (["rain"], False, "error"),  # "Rain" becomes [UNK].
        (["rain", "Rain"], True, "warning"),
        (["rain", "Rain"], False, "ok"),
        (["雨", "##雪"], False, "ok"),  # Has no capital letters at all.
        (["ა", "##ბ"], False, "ok"),  # Only Unicode has Georgian capitals.
        (["雨", "µ"], False, "ok"),  # A symbol, not a letter.
    ],
)
def test_casing_has_to_agree(tokens, do_lower_case, severity):
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, *tokens])
    found, _ = findings_of(
        text_checks.check_casing, vocabulary, do_lower_case=do_lower_case
    )
    assert found == [f"{severity} casing"]


def test_the_report_ends_with_the_counts_of_each_severity():
    findings = text_checks.Findings()
    findings.passed("examples", "3 in train")
    findings.warning("casing", "it does not agree", "data/a.tsv:7")
    findings.error("answers", "it is not there", "b.json")
    assert findings.report().splitlines() == [
        "ok      examples: 3 in train",
        "warning casing: data/a.tsv:7: it does not agree",
        "error   answers: b.json: it is not there",
        "passed: 1, warnings: 1, errors: 1",
    ]


def texts_of(count):
    return [(f"text {number}",) for number in range(count)]


def test_the_share_holds_for_every_stratum():
    strata = [0] * 100 + [1] * 40 + [2] * 10
    chosen = text_checks.held_out(texts_of(150), strata, share=0.2, seed=1)
    counts = collections.Counter(np.array(strata)[chosen].tolist())
    assert counts == {0: 20, 1: 8, 2: 2}


def test_the_choice_depends_on_the_seed_alone():
    def choose(seed):
        return text_checks.held_out(
            texts_of(60), [0] * 60, share=0.25, seed=seed
        ).tolist()

    assert choose(1) == choose(1)
    assert choose(1) != choose(2)
    assert sum(choose(2)) == 15


@pytest.mark.parametrize(
    "texts, num_held",
    [
        (
            [(f"{text} {n}",) for text in ("text", "TEXT") for n in range(30)],
            6,
        ),
        (
            [(f"premise {n // 3}", f"hypothesis {n % 50}") for n in range(90)],
            6,
        ),
    ],
)
def test_a_first_text_is_never_on_both_sides(texts, num_held):
    chosen = text_checks.held_out(texts, [0] * len(texts), share=0.2, seed=1)
    held, kept = set(), set()
    for example, is_held in zip(texts, chosen, strict=True):
        (held if is_held else kept).add(example[0].casefold())
    assert len(held) == num_held
    assert not held & kept


def test_a_large_group_stays_in_training():
    texts = [*texts_of(50), *[("the same text",)] * 50]
    chosen = text_checks.held_out(texts, [0] * 100, share=0.1, seed=1)
    assert np.sum(chosen) == 10
    assert not np.any(chosen[50:])


@pytest.mark.parametrize(
    "texts, share",
    [
        (texts_of(3), 0.1),  # Too few.
        ([("question", f"answer {n}") for n in range(20)], 0.2),  # All share a text.
    ],
)
def test_an_empty_hold_out_is_refused(texts, share):
    with pytest.raises(ValueError, match=r"holds out none: .* separate examples"):
        text_checks.held_out(texts, [0] * len(texts), share=share, seed=1)
