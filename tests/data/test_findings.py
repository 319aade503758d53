from bert_tf.data import text_checks


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
