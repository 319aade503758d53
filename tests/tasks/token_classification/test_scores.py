import random

import pytest

from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import scores

# BILOU is IOBES with other letters for the last and the only word.
AS_IOBES = {"L": "E", "U": "S"}


def entities(tags):
    """Returns {(first, last, type)} as conlleval's Perl code finds chunks."""
    chunks, start = set(), None
    padded = ["O", *tags, "O"]
    for index in range(1, len(padded)):
        before, prefix = padded[index - 1][0], padded[index][0]
        same = padded[index - 1][1:] == padded[index][1:]
        ends = before in "ES" or prefix in "BSO" or not same
        if before != "O" and ends:
            chunks.add((start, index - 2, padded[index - 1][2:]))
        starts = prefix in "BS" or before in "OES" or not same
        if prefix != "O" and starts:
            start = index - 1
    return chunks


@pytest.mark.parametrize("scheme", schemes.PREFIXES)
def test_entities_count_as_in_conlleval_also_where_tags_break_their_scheme(scheme):
    generator = random.Random(3)
    labels = schemes.labels_of(["S-PER", "S-LOC"], scheme)
    true, predicted, hits, num_true, num_predicted = [], [], 0, 0, 0
    for _ in range(200):
        length = generator.randint(1, 6)
        true.append(generator.choices(labels, k=length))
        kept = zip(true[-1], generator.choices(labels, k=length), strict=True)
        predicted.append([generator.choice(pair) for pair in kept])
        sets = [
            entities([AS_IOBES.get(tag[0], tag[0]) + tag[1:] for tag in tags])
            for tags in (true[-1], predicted[-1])
        ]
        hits += len(sets[0] & sets[1])
        ranges = schemes.entities(true[-1], scheme)
        assert {(first, last, kind) for kind, first, last in ranges} == sets[0]
        num_true, num_predicted = num_true + len(sets[0]), num_predicted + len(sets[1])
    results = scores.tag_scores(true, predicted, scheme)
    assert results["precision"] == pytest.approx(hits / num_predicted)
    assert results["recall"] == pytest.approx(hits / num_true)
    assert results["f1"] == pytest.approx(2 * hits / (num_true + num_predicted))


@pytest.mark.parametrize(
    "true, predicted, scheme, expected",
    [
        # One of two entities found; the other one's type is wrong.
        (
            "B-A I-A O B-B",
            "B-A I-A O B-A",
            "iob2",
            {"accuracy": 0.75, "precision": 0.5, "recall": 0.5, "f1": 0.5},
        ),
        # Half an entity does not count, even if two of three words are right.
        (
            "I-A I-A O",
            "I-A O O",
            "iob1",
            {"accuracy": 2 / 3, "precision": 0, "recall": 0, "f1": 0},
        ),
        ("NN VB NN", "NN VB VB", "none", {"accuracy": 2 / 3}),
        ("O", "O", "iob2", {"accuracy": 1, "precision": 0, "recall": 0, "f1": 0}),
    ],
)
def test_the_scores_are(true, predicted, scheme, expected):
    results = scores.tag_scores([true.split()], [predicted.split()], scheme)
    assert results == pytest.approx(expected)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="at least one word"):
        scores.tag_scores([], [], "none")
    with pytest.raises(ValueError, match=r"shorter|longer"):
        scores.tag_scores([["O"]], [["O", "O"]], "none")
