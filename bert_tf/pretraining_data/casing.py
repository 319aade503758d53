"""Checks that a vocabulary fits the casing of the text."""

from bert_tf.tokenization import characters
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

# Vocabularies of lowercased text have no accents, and others of most languages many.
_ACCENTED_SHARE = 0.02


def warning(
    vocabulary: vocabulary_module.Vocabulary, *, do_lower_case: bool
) -> str | None:
    """Returns a sentence if many pieces cannot occur, or many words become [UNK].

    Args:
        vocabulary: of the model.
        do_lower_case: whether text is lowercased, which also strips its accents.
    """
    found = full.casing_warning(vocabulary, do_lower_case=do_lower_case)
    if found is not None or not do_lower_case:
        return found
    pieces = [token for token in vocabulary.tokens if not token.startswith("[")]
    accented = [p for p in pieces if characters.strip_accents(p) != p]
    if len(accented) > _ACCENTED_SHARE * len(pieces):
        return (
            f"Lowercased text loses its accents, but {len(accented)} of the "
            f"{len(pieces)} pieces of the vocabulary have accents, such as "
            f"{accented[0]!r}; learn the vocabulary without --strip_accents=False, "
            "or lowercase the text yourself and pass --do_lower_case=False."
        )
    return None
