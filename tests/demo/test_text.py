import pytest

from bert_tf import files
from bert_tf.demo import text


def _lines(path):
    return list(files.read_lines(path))


def test_the_packages_corpus_is_taken_as_it_is(tmp_path):
    corpus = text.prepare_corpus(None, tmp_path)
    train, heldout = _lines(corpus.train_file), _lines(corpus.heldout_file)
    assert len(train) > len(heldout) > 100
    assert not set(filter(None, train)) & set(filter(None, heldout))
    assert list(tmp_path.iterdir()) == []


def test_own_documents_are_divided_and_none_is_in_both(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("\n\n".join(f"First {i}.\nSecond {i}." for i in range(20)) + "\n")
    corpus = text.prepare_corpus(str(own), tmp_path)
    heldout = _lines(corpus.heldout_file)
    assert heldout == ["First 0.", "Second 0.", "", "First 10.", "Second 10."]
    train = _lines(corpus.train_file)
    assert len(train) == 18 * 3 - 1
    assert not set(filter(None, train)) & set(heldout)


def test_a_paragraph_in_one_line_is_divided_into_its_sentences(tmp_path):
    own = tmp_path / "own.txt"
    paragraph = 'He said: "Go!" They went. Was it 3.5 miles? No.'
    own.write_text("\n\n".join([paragraph] * 4))
    corpus = text.prepare_corpus(str(own), tmp_path)
    expected = ['He said: "Go!"', "They went.", "Was it 3.5 miles?", "No."]
    assert _lines(corpus.heldout_file)[:4] == expected


@pytest.mark.parametrize("num_documents", [4, 5, 9])
def test_few_documents_leave_at_least_two_on_each_side(tmp_path, num_documents):
    own = tmp_path / "own.txt"
    own.write_text("\n\n".join("One.\nTwo." for _ in range(num_documents)))
    corpus = text.prepare_corpus(str(own), tmp_path)
    for path in (corpus.train_file, corpus.heldout_file):
        assert _lines(path).count("One.") >= 2


def test_too_few_documents_are_refused_with_what_to_do(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("One.\nTwo.\n\nThree.\n")
    with pytest.raises(ValueError, match=r"contains 2 documents, .* Put a blank line"):
        text.prepare_corpus(str(own), tmp_path)


def test_masked_texts_hide_a_whole_word_in_the_middle(tmp_path):
    lines = ["Too short.", "", "The cat sat on the mat today.", "a b c d, e f"]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    (masked,) = text.masked_texts(tmp_path / "t.txt", 5)
    assert masked.text == "The cat sat [MASK] the mat today."
    assert masked.word == "on"


def test_with_the_training_text_content_words_are_masked(tmp_path):
    (tmp_path / "train.txt").write_text("the on cat sat\n" * 9 + "the on mat cow\n" * 3)
    (tmp_path / "vocab.txt").write_text("the\non\ncat\nsat\nmat\n")
    (tmp_path / "t.txt").write_text("The cow lay on the mat in the evening.\n")
    (masked,) = text.masked_texts(
        tmp_path / "t.txt",
        5,
        train_file=tmp_path / "train.txt",
        vocab_file=tmp_path / "vocab.txt",
    )
    # Not "the", the most frequent quarter; not "cow", which is not a word piece.
    assert masked.word in ("on", "mat")
    assert "[MASK]" in masked.text
