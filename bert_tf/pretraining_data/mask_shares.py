"""What replaces the pieces that are chosen to be predicted."""

import dataclasses

_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskShares:
    """Shares of the chosen pieces; they add up to 1.

    Why not [MASK] always: the model never sees [MASK] in fine-tuning, so a model that
    learned to encode only masked positions well would fit its later tasks badly. A
    tenth therefore keeps its piece, which pulls the encoding of a visible word towards
    that word, and a tenth gets a random piece. The model cannot tell which positions
    were chosen or changed, so it has to encode every position in its context. Random
    pieces are 1.5 % of all pieces, too few to harm what it learns of the language.

    Source: section 3.1 and appendix A.1 of arXiv:1810.04805. Its Table 8 compares other
    shares: fine-tuning hardly notices them, but feature-based use suffers from [MASK]
    alone, and random pieces alone do worse in every column.
    """

    mask: float = 0.8  # Replaced by [MASK].
    same: float = 0.1  # Kept.
    random: float = 0.1  # Replaced by a random piece of the vocabulary.

    def check(self) -> None:
        """Checks that the shares add up to 1.

        Raises:
            ValueError: they do not, or one is negative.
        """
        total = self.mask + self.same + self.random
        if min(self.mask, self.same, self.random) < 0 or abs(total - 1) > _ROUNDING:
            raise ValueError(
                f"--mask_share={self.mask:g}, --same_share={self.same:g} and "
                f"--random_share={self.random:g} add up to {total:g}, expected 1; set "
                "all three."
            )

    @property
    def same_of_rest(self) -> float:
        """Share that is kept among the pieces that are not replaced by [MASK]."""
        rest = self.same + self.random
        return self.same / rest if rest else 0.0
