# %% [markdown]
# # Choose an ending
#
# An example is the start of a text, a list of endings, and the number of the right
# one, counted from 0.

# %%
import bert_tf

train = [
    ("She opened the umbrella because", ["it rained.", "it was a book."], 0),
    ("He put the bread into", ["the song.", "the oven."], 1),
    ("The dog wagged", ["its tail.", "its window."], 0),
    ("They lit a candle because", ["the soup was cold.", "it was dark."], 1),
    ("The train arrived", ["ten minutes late.", "in a spoon."], 0),
    ("She wrote a letter", ["with a cloud.", "to her brother."], 1),
]

# %%
model = bert_tf.fine_tune.choose(
    train,
    "bert-base-uncased",
    "runs/endings",
    num_train_epochs=4,
    train_batch_size=2,
    max_seq_length=32,
)

# %%
model.predict([("He turned on the lamp because", ["it was night.", "it sang."])])
