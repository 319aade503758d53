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


def test_duplicates_contradictions_overlap_and_empty_texts_have_their_places():
    train = [
        item("It rains.", "rain", "t:2"),
        item("it  RAINS.", "rain", "t:3"),  # Case and spaces make no difference.
        item("Sun", "sun", "t:4"),
        item("sun", "rain", "t:5"),
        item(" ", "sun", "t:6"),
    ]
    _, findings = findings_of(
        text_checks.check_texts, {"train": train, "dev": [item("SUN", "sun", "d:2")]}
    )
    assert [str(found) for found in findings.all] == [
        "ok      examples: 5 in train, 1 in dev",
        "warning empty texts: t:6: a text is empty",
        "warning duplicates: train: 2 of 5 texts occurred before (t:3 as t:2, t:5 as "
        "t:4)",
        "warning contradictions: t:5: train: same text as t:4, which has the "
        "label 'sun' instead of 'rain'",
        "ok      duplicates: dev: every text occurs once",
        "warning overlap: 1 of 1 texts of dev are also in train (d:2 as t:4); scores "
        "on them are too high",
    ]


@pytest.mark.parametrize(
    "train, dev, expected",
    [
        (
            ["a", "b"] * 20,
            ["a", "b"],
            ["ok label balance", "ok label balance", "ok label sets"],
        ),
        (
            ["a"] * 95 + ["b"] * 5,  # The same class nearly always.
            ["a", "b"],
            [
                "warning label balance",
                "ok label balance",
                "ok label sets",
            ],
        ),
        (
            ["a", "b"] * 20,
            ["a", "c"],  # Never seen in training; never scored.
            [
                "ok label balance",
                "ok label balance",
                "error label sets",
                "warning label sets",
            ],
        ),
    ],
)
def test_classes_are_judged_by_their_share(train, dev, expected):
    found, _ = findings_of(text_checks.check_labels, {"train": train, "dev": dev})
    assert found == expected


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
    "tokens, do_lower_case, texts, severity",
    [
        (["rain"], True, ["Rain"] * 20, "ok"),
        (["rain"], False, ["Rain"] * 20, "error"),  # "Rain" becomes [UNK].
        (["rain", "Rain"], True, ["Rain"] * 20, "warning"),
        (["rain", "Rain"], False, ["Rain"] * 20, "ok"),
        (["rain", "Rain"], False, ["rain"] * 20, "warning"),  # Strange to the model.
        (["雨", "##雪"], False, ["雨"] * 20, "ok"),  # Has no capital letters at all.
        (["ა", "##ბ"], False, ["აბ"] * 20, "ok"),  # Only Unicode has Georgian capitals.
        (["雨", "µ"], False, ["雨"] * 20, "ok"),  # A symbol, not a letter.
    ],
)
def test_casing_has_to_agree(tokens, do_lower_case, texts, severity):
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, *tokens])
    found, findings = findings_of(
        text_checks.check_casing, texts, vocabulary, do_lower_case=do_lower_case
    )
    assert found == [f"{severity} casing"]
    if severity == "error":
        assert "model. In this data, 100% of the texts" in findings.all[0].message


def test_the_report_ends_with_the_counts_of_each_severity():
    findings = text_checks.Findings()
    findings.passed("examples", "3 in train")
    findings.warning("empty texts", "a text is empty", "data/a.tsv:7")
    findings.note("estimate", "10 steps")
    findings.error("answers", "it is not there", "b.json")
    assert findings.report().splitlines() == [
        "ok      examples: 3 in train",
        "warning empty texts: data/a.tsv:7: a text is empty",
        "note    estimate: 10 steps",
        "error   answers: b.json: it is not there",
        "1 check passed, 1 warning, 1 error",
    ]
    assert findings.has_errors
