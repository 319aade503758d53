import pytest

from bert_tf.checkpoints import text_encoding

FULL = {
    "do_lower_case": True,
    "strip_accents": False,
    "never_split": ["[E1]"],
    "max_seq_length": 32,
    "pooling": "cls",
    "normalize": False,
    "prompts": {"query": "query: ", "passage": "passage: "},
    "default_prompt_name": "query",
    "similarity": "dot",
    "output_activation": "sigmoid",
}


def test_the_values_of_a_file_make_the_record_and_the_record_makes_them_again():
    text = text_encoding.TextEncoding.from_dict(FULL, path="task.json")
    assert text.never_split == ("[E1]",)
    assert text.to_dict() == FULL
    assert text_encoding.TextEncoding().to_dict() == {}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"do_lower_case": 1}, "unexpected value of do_lower_case: 1;"),
        ({"max_seq_length": True}, "of max_seq_length: True;"),
        ({"pooling": "lasttoken"}, "of pooling: 'lasttoken'; expected one of cls"),
        ({"similarity": "l2"}, "of similarity: 'l2'; expected one of cosine, dot"),
        ({"output_activation": "relu"}, "expected one of identity, sigmoid"),
        ({"default_prompt_name": "x"}, "expected one of the prompts query, passage"),
        ({"prompts": {"query": 3}}, "of prompts.query: 3;"),
    ],
)
def test_a_wrong_value_is_refused_with_its_file(changes, message):
    with pytest.raises(ValueError, match=f"task.json.*{message}"):
        text_encoding.TextEncoding.from_dict({**FULL, **changes}, path="task.json")


@pytest.mark.parametrize(
    "values, stated",
    [
        ({"do_lower_case": True}, ()),  # Every format can say it.
        ({"do_lower_case": True, "strip_accents": True}, ()),  # As in 2018.
        ({"do_lower_case": True, "strip_accents": False}, ("strip_accents",)),
        ({"pooling": "mean", "prompts": {"query": ""}}, ("pooling",)),
        ({"max_seq_length": 128}, ()),  # The length of a run's training.
        (
            {"max_seq_length": 8, "pooling": "max", "normalize": True},
            ("max_seq_length", "pooling", "normalize"),
        ),
    ],
)
def test_what_casing_alone_does_not_say_is_stated(values, stated):
    text = text_encoding.TextEncoding.from_dict(values, path="task.json")
    assert text.stated() == stated


@pytest.mark.parametrize(
    "model, known",
    [
        ("bi_encoder", {"normalize": True, "similarity": "cosine"}),
        ("cross_encoder", {"output_activation": "identity"}),
    ],
)
def test_runs_that_did_not_record_it_have_what_they_always_computed(model, known):
    text = text_encoding.TextEncoding.from_dict({"model": model}, path="task.json")
    assert text.to_dict() == known


@pytest.mark.parametrize(
    "names, prompt",
    [
        (("document", "passage"), "passage: "),  # The first name that exists.
        (("document",), "query: "),  # The default one.
        ((), "query: "),
    ],
)
def test_a_prompt_is_found_by_the_first_name_or_by_default(names, prompt):
    text = text_encoding.TextEncoding.from_dict(FULL, path="task.json")
    assert text.prompt(names) == prompt
