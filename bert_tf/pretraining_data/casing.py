"""Checks that a vocabulary fits the casing of the text."""

from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module

# Cased vocabularies have about a third of pieces with capital letters, others none.
_CASED_SHARE = 0.05
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
    pieces = [token for token in vocabulary.tokens if not token.startswith("[")]
    num_cased = sum(piece != piece.lower() for piece in pieces)
    if do_lower_case and num_cased > _CASED_SHARE * len(pieces):
        return (
            f"The text is lowercased, but {num_cased} of the {len(pieces)} pieces of "
            "the vocabulary have capital letters; pass --do_lower_case=false for a "
            "cased vocabulary."
        )
    if do_lower_case:
        accented = [p for p in pieces if characters.strip_accents(p) != p]
        if len(accented) > _ACCENTED_SHARE * len(pieces):
            return (
                f"Lowercased text loses its accents, but {len(accented)} of the "
                f"{len(pieces)} pieces of the vocabulary have accents, such as "
                f"{accented[0]!r}; learn the vocabulary without --strip_accents=false, "
                "or lowercase the text yourself and pass --do_lower_case=false."
            )
        return None
    if not num_cased and any(piece != piece.upper() for piece in pieces):
        return (
            "The text keeps its capital letters, but no piece of the vocabulary has "
            "one, so words with capitals become [UNK]; pass --do_lower_case for an "
            "uncased vocabulary."
        )
    return None
