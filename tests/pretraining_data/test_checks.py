"""--check of create_pretraining_data."""

import pytest

from bert_tf.pretraining_data import checks
from bert_tf.pretraining_data import options as pretraining_data_options


@pytest.fixture
def check(golden, tmp_path):
    def run(path, **flags):
        return checks.run(
            pretraining_data_options.CreatePretrainingDataOptions(
                input_file=str(path),
                output_file=str(tmp_path / "unwritten"),
                vocab_file=str(golden / "vocab.txt"),
                check=True,
                **flags,
            )
        )

    return run


def lines_of(findings, severity):
    return [str(one)[8:] for one in findings.all if one.severity == severity]


def test_one_document_is_not_a_corpus(check, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one sentence .\nanother one .\n")
    findings = check(path)
    [error] = lines_of(findings, "error")
    assert error.startswith("documents: next-sentence examples need two")
    assert "documents: 1 documents, 2 sentences, " in " ".join(lines_of(findings, "ok"))


def test_text_for_pretraining(check, sample_data):
    findings = check(sample_data / "corpus.txt")
    assert lines_of(findings, "error") == []
    assert "documents" in " ".join(lines_of(findings, "ok"))
