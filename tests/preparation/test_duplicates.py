import random

import numpy as np
import pytest

from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import duplicates
from bert_tf.preparation import minhash
from bert_tf.preparation import parts as parts_module


@pytest.fixture
def make_parts(tmp_path):
    def make(*documents_of_parts):
        result = []
        for number, documents in enumerate(documents_of_parts):
            stem = parts_module.stem(str(tmp_path), number)
            counts = counts_module.ReadCounts()
            with parts_module.Writer(stem, counts, has_signatures=True) as writer:
                for document in documents:
                    writer.start_document("en")
                    for paragraph in document:
                        writer.add_paragraph([paragraph])
                    writer.end_document()
            result.append(parts_module.load(stem))
        return result

    return make


def test_the_first_of_equal_paragraphs_is_kept_across_parts(make_parts, monkeypatch):
    found = make_parts([["a", "b", "a"], ["c"]], [["b", "d"]], [["d", "a", "e"]])
    everything = np.ones(4, bool)
    expected = [True, True, False, True, False, True, False, False, True]
    assert duplicates.first_paragraphs(found, everything).tolist() == expected
    # In bounded memory the same: a few hashes at a time.
    monkeypatch.setattr(duplicates, "_HASHES_AT_ONCE", 2)
    assert duplicates.first_paragraphs(found, everything).tolist() == expected


def test_a_document_left_out_makes_no_paragraph_a_duplicate(make_parts):
    found = make_parts([["a"], ["a", "b"]])
    kept = duplicates.first_paragraphs(found, np.array([False, True]))
    assert kept.tolist() == [False, True, True]


def _words(seed, count=600):
    choose = random.Random(seed)
    return [f"word{choose.randrange(5000)}" for _ in range(count)]


def _changed(words, share):
    choose = random.Random(1)
    return [f"new{n}" if choose.random() < share else w for n, w in enumerate(words)]


def test_near_duplicates_are_found_and_others_are_not(make_parts):
    text = _words(1)
    documents = [
        [" ".join(text)],
        [" ".join(_words(2))],
        [" ".join(_changed(text, 0.01))],  # About 90 % of its runs are the first's.
        [" ".join(_changed(text, 0.1))],  # About 40 %.
        ["Short text."],
        ["Short text."],
        ["Other text."],
        # The same words in other paragraphs and capitals.
        [" ".join(text[:300]).upper(), " ".join(text[300:])],
    ]
    kept = duplicates.first_documents(make_parts(documents[:3], documents[3:]))
    assert kept.tolist() == [True, True, False, True, True, False, True, False]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_equal_values_of_signatures_estimate_the_shared_runs(share):
    words = _words(3, count=3000)
    runs, signatures = [], []
    for text in (words, _changed(words, share)):
        runs.append({tuple(text[n : n + 5]) for n in range(len(text) - 4)})
        signature = minhash.Signature()
        # For any way of passing the text.
        signature.add(" ".join(text[:1000]))
        signature.add(" ".join(text[1000:]))
        signatures.append(signature.finish())
    likeness = len(runs[0] & runs[1]) / len(runs[0] | runs[1])
    # Four standard deviations of 128 draws.
    room = 4 * (likeness * (1 - likeness) / minhash.NUM_VALUES) ** 0.5
    assert abs((signatures[0] == signatures[1]).mean() - likeness) < room


def test_a_signature_does_not_depend_on_how_the_text_is_given():
    words = _words(4, count=40_000)
    whole, pieces = minhash.Signature(), minhash.Signature()
    whole.add(" ".join(words))
    for start in range(0, len(words), 7):
        pieces.add(" ".join(words[start : start + 7]))
    first = whole.finish()
    assert (first == pieces.finish()).all()
    whole.add(" ".join(words))
    assert (whole.finish() == first).all()
