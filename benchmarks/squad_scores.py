"""Part of squad: random scores of windows. Needs only NumPy."""

import numpy as np


def random_scores(num_windows, length):
    """Returns start and end logits, float32 [W, S] each.

    Like those of a trained model, the best ones of a window are close to each other.
    """
    generator = np.random.default_rng(7)
    noise = generator.normal(size=(2, num_windows, length))
    center = generator.integers(15, 80, size=(num_windows, 1))
    distance = (np.arange(length)[None] - center) / 8
    return (noise + 8 * np.exp(-np.square(distance))).astype(np.float32)
