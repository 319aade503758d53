"""How often each document is taken, so that small languages weigh more.

With p the share of a language in the characters and s the exponent, a language is taken
with weight p^s: with 0.7 a language of 1/1000 weighs as much as one of 1/125 does.
Source: multilingual.md of the release.
"""

import zlib

import numpy as np


def copies(
    languages: np.ndarray,
    characters: np.ndarray,
    codes: list[str],
    *,
    exponent: float,
    seed: int,
) -> np.ndarray:
    """Returns how often each document is taken, int64 [D].

    Within a language every document is taken equally often, up to one; those that are
    taken once more are spread evenly over it.

    Args:
        languages: int [D], numbers of the documents' languages.
        characters: int [D], sizes; documents of size 0 are no part of it.
        codes: the languages' codes.
        exponent: 1 leaves the shares, 0 makes them equal. The sum of the characters
            stays about the same.
        seed: where the even spread begins.
    """
    characters = characters.astype(np.float64)
    sizes = np.bincount(languages, characters, minlength=len(codes))
    result = np.zeros(len(languages), np.int64)
    total = sizes.sum()
    if not total:
        return result
    weights = np.where(sizes > 0, (sizes / total) ** exponent, 0.0)
    factors = weights / weights.sum() * total / np.where(sizes > 0, sizes, 1.0)
    for number, code in enumerate(codes):
        chosen = (languages == number) & (characters > 0)
        random = np.random.default_rng([seed, zlib.crc32(code.encode())])
        steps = np.arange(chosen.sum() + 1) * factors[number] + random.random()
        result[chosen] = np.diff(np.floor(steps).astype(np.int64))
    return result
