import numpy as np
import pytest

from bert_tf.tasks.token_classification import predictions

TEST = """\
-DOCSTART- -X- O

EU NNP B-ORG
rejects VBZ O


Peter NNP B-PER
"""


def test_the_likeliest_tag_is_taken():
    logits = np.array([[0.0, 2.0], [1.0, -1.0]])
    assert predictions.best_tags(logits, ["O", "B-X"]) == ["B-X", "O"]


def test_the_file_keeps_its_form_and_has_the_predicted_tags(tmp_path):
    (tmp_path / "test.txt").write_text(TEST)
    tags = ["O", "B-LOC", "B-PER"]
    path = predictions.write_predictions(
        str(tmp_path), str(tmp_path / "test.txt"), 2, tags
    )
    assert path == str(tmp_path / "test_predictions.txt")
    expected = TEST.replace("NNP B-ORG", "NNP O").replace("VBZ O", "VBZ B-LOC")
    assert (tmp_path / "test_predictions.txt").read_text() == expected


def test_a_file_without_tags_gets_a_column_more(tmp_path):
    (tmp_path / "test.txt").write_text("EU\nrejects\n\nPeter\n")
    predictions.write_predictions(
        str(tmp_path), str(tmp_path / "test.txt"), 1, ["B-ORG", "O", "B-PER"]
    )
    written = (tmp_path / "test_predictions.txt").read_text()
    assert written == "EU B-ORG\nrejects O\n\nPeter B-PER\n"


def test_a_file_that_grew_meanwhile_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "test.txt").write_text("EU\nrejects\n")
    with pytest.raises(ValueError, match=r"more words than there .* tags \(1\)"):
        predictions.write_predictions(
            str(tmp_path), str(tmp_path / "test.txt"), 1, ["O"]
        )
    assert not (tmp_path / "test_predictions.txt").exists()
