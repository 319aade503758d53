import pytest

from bert_tf.tasks.token_classification import schemes


@pytest.mark.parametrize(
    "sentences, scheme",
    [
        ("B-PER I-PER O B-LOC", "iob2"),
        ("I-PER B-PER I-PER", "iob1"),  # The second of two adjacent ones.
        ("B-PER E-PER S-LOC O", "iobes"),
        ("S-LOC", "iobes"),
        ("B-PER I-PER L-PER U-LOC", "bilou"),
        ("NN VBZ NN-TL", "none"),
        ("O PER LOC", "none"),
        ("O O", "none"),
        # One tag breaks IOB2, two break IOB1.
        ("B-PER I-PER / B-LOC / I-LOC", "iob2"),
        ("I-PER / I-LOC I-LOC / B-LOC", "iob1"),
    ],
)
def test_the_scheme_is_recognized(sentences, scheme):
    tags = [sentence.split() for sentence in sentences.split(" / ")]
    assert schemes.recognize_scheme(tags) == scheme


@pytest.mark.parametrize(
    "sentence, stray, scheme",
    [
        ("B-PER I-PER O B-LOC", "LOC", "iob2"),  # Its prefix was left out.
        ("I-PER I-PER O I-LOC", "LOC", "iob1"),
        ("B-PER I-PER O B-LOC", "S-PER", "iob2"),
        ("B-PER E-PER O S-LOC", "U-LOC", "iobes"),
        ("B-PER L-PER O U-LOC", "S-LOC", "bilou"),
        # Entities so long that E- and S- are as rare as slips are.
        (" ".join(["B-PRO", *["I-PRO"] * 40, "E-PRO"]), "L-PRO", "iobes"),
    ],
)
def test_one_mistyped_tag_does_not_change_the_scheme(sentence, stray, scheme):
    tags = [sentence.split()] * 60
    assert schemes.recognize_scheme([*tags, ["O", stray]]) == scheme
    index, reason = schemes.breach(["O", stray], scheme)
    assert index == 1
    assert repr(stray) in reason


@pytest.mark.parametrize(
    "num_plain, scheme",
    # Of 100 words with a tag other than O.
    [(10, "iob2"), (11, None), (49, None), (50, "none")],
)
def test_tags_mostly_with_a_prefix_never_become_plain_ones(num_plain, scheme):
    tags = ["NN"] * num_plain + ["B-X"] * (100 - num_plain) + ["O"] * 1000
    if scheme is None:
        expected = f"{num_plain} of 100 tags have no prefix .* the first is 'NN'"
        with pytest.raises(ValueError, match=expected):
            schemes.recognize_scheme([tags])
    else:
        assert schemes.recognize_scheme([tags]) == scheme


@pytest.mark.parametrize(
    "labels, scheme",
    [
        ("O B-A I-A B-B I-B", "iob2"),
        ("O I-A I-B B-B", "iob1"),
        ("O B-A I-A E-A", "iobes"),  # No entity of one word was ever seen.
        ("B-A I-A L-A U-A O", "bilou"),
        ("O B-A I-A [CLS]", "none"),
        ("O", "none"),
    ],
)
def test_the_scheme_of_a_models_tags_is_that_of_their_prefixes(labels, scheme):
    assert schemes.scheme_of_labels(labels.split()) == scheme


@pytest.mark.parametrize(
    "tags, scheme, index, reason",
    [
        ("B-LOC I-PER", "iob2", 1, "'I-PER' cannot follow 'B-LOC'"),
        ("B-PER", "iob1", 0, "'B-PER' cannot start an entity"),
        ("I-LOC B-PER", "iob1", 1, "'B-PER' cannot follow 'I-LOC'"),
        ("S-PER", "iob2", 0, "'S-PER' is not one of B-…, I-… and O"),
        ("S-PER I-PER", "iobes", 1, "'I-PER' cannot follow 'S-PER'"),
        ("B-PER O", "iobes", 1, "'O' cannot follow 'B-PER'"),
        ("B-PER I-PER", "iobes", 2, "the sentence ends inside the entity"),
        ("B-PER L-LOC", "bilou", 1, "'L-LOC' cannot follow 'B-PER'"),
        ("B-PER E-PER", "bilou", 1, "'E-PER' is not one of B-…, I-…, L-…, U-… and O"),
    ],
)
def test_the_first_tag_that_breaks_a_scheme_is_found(tags, scheme, index, reason):
    place, sentence = schemes.breach(tags.split(), scheme)
    assert place == index
    assert reason in sentence


@pytest.mark.parametrize(
    "tags, scheme",
    [
        ("I-PER B-PER I-PER O I-LOC", "iob1"),
        ("B-PER B-PER I-PER O B-LOC", "iob2"),
        ("S-PER B-PER I-PER E-PER O S-LOC", "iobes"),
        ("U-PER B-PER I-PER L-PER O U-LOC", "bilou"),
        ("B-anything goes I-here", "none"),
        ("B-A-B I-A-B", "iob2"),  # A type may have a hyphen.
    ],
)
def test_tags_that_keep_to_a_scheme_pass(tags, scheme):
    assert schemes.breach(tags.split(), scheme) is None
