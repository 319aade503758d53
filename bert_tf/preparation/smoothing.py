"""Exponential smoothing: how often each document is taken, by its language.

A language with share p of the characters gets a weight proportional to p^s, where s is
the exponent. With s = 0.7, a language with a share of 1/1000 gets as much weight as one
of 1/125 would without smoothing, so small languages learn more and large ones lose
little. Source: multilingual.md of the release.
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

    Within a language, the counts of any two documents differ by at most one. The
    documents that are taken once more are spread evenly.

    Args:
        languages: int [D], the index of each document's language in `codes`.
        characters: int [D], sizes of the documents; those of size 0 are ignored.
        codes: language codes.
        exponent: 1 keeps the shares, 0 makes them equal. The total number of characters
            stays about the same.
        seed: determines where the even spread begins.
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
