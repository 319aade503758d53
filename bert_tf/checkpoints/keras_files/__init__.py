"""Files that Keras saves: `.keras` and `.weights.h5`."""
