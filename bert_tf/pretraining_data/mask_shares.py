"""What becomes of the pieces that are chosen to be predicted."""

import dataclasses

_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskShares:
    """Shares of the chosen pieces; they add up to 1.

    Source: appendix A.1 of the paper; its Table 8 compares other shares.
    """

    mask: float = 0.8  # Become [MASK].
    same: float = 0.1  # Stay as they are.
    random: float = 0.1  # Become any piece of the vocabulary.

    def check(self) -> None:
        """Raises a ValueError where the shares do not add up to 1."""
        total = self.mask + self.same + self.random
        if min(self.mask, self.same, self.random) < 0 or abs(total - 1) > _ROUNDING:
            raise ValueError(
                f"--mask_share={self.mask:g}, --same_share={self.same:g} and "
                f"--random_share={self.random:g} add up to {total:g}, expected 1; give "
                "all three."
            )

    @property
    def same_of_rest(self) -> float:
        """Of the pieces that do not become [MASK], the share that stays."""
        rest = self.same + self.random
        return self.same / rest if rest else 0.0
