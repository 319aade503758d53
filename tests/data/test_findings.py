from bert_tf.data import findings as findings_module


def test_the_report_ends_with_the_counts_of_each_severity():
    findings = findings_module.Findings()
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


def test_many_findings_of_one_check_do_not_hide_others():
    findings = findings_module.Findings()
    for line in range(1, 31):
        findings.error("tags", "wrong", f"a.txt:{line}")
    findings.passed("examples", "30")
    *shown, more, other, summary = findings.report().splitlines()
    assert [line.split(":")[2] for line in shown] == [str(n) for n in range(1, 11)]
    assert more == "error   tags: and 20 more"
    assert other == "ok      examples: 30"
    assert summary == "1 check passed, 0 warnings, 30 errors"


def test_only_the_first_places_are_named():
    assert findings_module.places(["a:1", "a:2"]) == "a:1, a:2"
    assert findings_module.places("abcde") == "a, b, c and 2 more"
