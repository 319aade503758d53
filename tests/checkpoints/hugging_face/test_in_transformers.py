"""What we write, loaded by transformers and sentence-transformers."""


def test_every_kind_of_model_is_the_same_there(check_there):
    check, lines = check_there("check_hugging_face.py")
    assert len(lines) == len(check.MODELS) + 1  # The last has added words.
    assert all(line.endswith("  ok") for line in lines)
