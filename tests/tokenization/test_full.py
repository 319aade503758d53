import pickle
import re

import pytest

from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

VOCABULARY = vocabulary_module.Vocabulary(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "é", "e", "."]
)


def test_text_becomes_pieces_and_ids_and_back():
    tokenizer = full.FullTokenizer(VOCABULARY)
    pieces = tokenizer.tokenize("The cats É. dog")
    assert pieces == ["the", "cat", "##s", "e", ".", "[UNK]"]
    ids = tokenizer.convert_tokens_to_ids(pieces)
    assert ids == [5, 6, 7, 9, 10, 1]
    assert tokenizer.convert_ids_to_tokens(ids) == pieces


def test_the_release_s_attributes_are_there(golden):
    tokenizer = full.FullTokenizer(str(golden / "vocab.txt"), do_lower_case=False)
    assert tokenizer.vocab["[MASK]"] == 9
    assert tokenizer.inv_vocab[9] == "[MASK]"
    assert list(tokenizer.vocab.values()) == list(range(288))
    assert tokenizer.basic_tokenizer.tokenize("A b.") == ["A", "b", "."]
    assert tokenizer.wordpiece_tokenizer.tokenize("\u0394") == ["[UNK]"]
    assert tokenizer.vocabulary.tokens[9] == "[MASK]"


def test_special_tokens_can_be_kept_whole():
    tokenizer = full.FullTokenizer(VOCABULARY, never_split=("[MASK]",))
    assert tokenizer.tokenize("the [MASK]s.") == ["the", "[MASK]", "[UNK]", "."]
    assert full.FullTokenizer(VOCABULARY).tokenize("[MASK]") == ["[UNK]"] * 3


def test_a_token_without_an_id_cannot_be_kept_whole():
    with pytest.raises(ValueError, match=r"'\[X\]' is not among the vocabulary's 11"):
        full.FullTokenizer(VOCABULARY, never_split=("[X]",))


def test_what_is_neither_path_nor_vocabulary_is_refused():
    with pytest.raises(ValueError, match="expected a path or a Vocabulary, got list"):
        full.FullTokenizer(["[PAD]"])


def test_a_tokenizer_can_be_sent_to_another_process():
    tokenizer = full.FullTokenizer(VOCABULARY, never_split=("[MASK]",))
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.tokenize("the cats") == tokenizer.tokenize("the cats")


@pytest.mark.parametrize(
    "do_lower_case, checkpoint, fits",
    [
        (True, "models/uncased_L-12_H-768_A-12/bert_model.ckpt", True),
        (True, "chinese_L-12_H-768_A-12/bert_model.ckpt", True),
        (False, "multi_cased_L-12_H-768_A-12/bert_model.ckpt", True),
        (False, "mine/bert_model.ckpt", True),  # Not a released name: not judged.
        (False, "uncased_L-12_H-768_A-12/model.ckpt-7", True),
        (False, None, True),
        (False, "models/uncased_L-12_H-768_A-12/bert_model.ckpt", False),
        (False, "multilingual_L-12_H-768_A-12/bert_model.ckpt", False),
        (False, "wwm_uncased_L-24_H-1024_A-16/bert_model.ckpt", False),
        (True, "wwm_cased_L-24_H-1024_A-16/bert_model.ckpt", False),
        (True, "multi_cased_L-12_H-768_A-12/bert_model.ckpt", False),
    ],
)
def test_case_has_to_fit_the_name_of_a_released_checkpoint(
    do_lower_case, checkpoint, fits
):
    if fits:
        full.validate_case_matches_checkpoint(do_lower_case, checkpoint)
        return
    with pytest.raises(ValueError, match=f"pass --do_lower_case={not do_lower_case}"):
        full.validate_case_matches_checkpoint(do_lower_case, checkpoint)


LOWERED = ("the", "##s", "cat", "1", ",")
MANY = tuple(f"word{number}" for number in range(99))


@pytest.mark.parametrize(
    "pieces, do_lower_case, expected",
    [
        (LOWERED, True, None),
        ((*LOWERED, "The"), True, "the vocabulary has cased pieces such as 'The'"),
        ((*MANY, "The"), True, "cased pieces such as 'The'"),  # As when fine-tuning.
        ((*LOWERED, "The"), False, None),
        ((*LOWERED, "café"), True, "1 of the 6 .* accents, such as 'café'; use"),
        ((*MANY, "café"), True, None),  # A word that was added.
        ((*LOWERED, "café", "The"), False, None),
        (LOWERED, False, "no piece of the vocabulary has capital letters, so words"),
        (("的", "##中", "1"), False, None),  # No piece has a case.
    ],
)
def test_the_casing_fits_the_vocabulary(pieces, do_lower_case, expected):
    pieces = [*vocabulary_module.SPECIAL_TOKENS, *pieces]
    vocabulary = vocabulary_module.Vocabulary(pieces)
    found = full.pretraining_casing_warning(vocabulary, do_lower_case=do_lower_case)
    assert (found is None) == (expected is None)
    assert re.search(expected or "", found or "")
