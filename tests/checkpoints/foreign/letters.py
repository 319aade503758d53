"""The vocabulary and the batch of the models that several scripts write."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
TOKENS += [f"##{letter}" for letter in LETTERS] + ["the", "cat", "sat"]  # V = 60
# Two segments, and the second row padded.
IDS = [[2, 57, 58, 4, 3, 6, 35, 3], [2, 20, 4, 3, 9, 3, 0, 0]]
MASK = [[1] * 8, [1] * 6 + [0] * 2]
SEGMENTS = [[0] * 5 + [1] * 3, [0] * 4 + [1] * 2 + [0] * 2]
POSITIONS = [[3, 1], [2, 4]]
BATCH = {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS}
