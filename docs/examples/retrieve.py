# %% [markdown]
# # Find passages
#
# An example is a query and a passage that answers it. Without `corpus=`, the model
# searches the passages of the examples; with it, a list of texts or a file.

# %%
import bert_tf

train = [
    ("opening hours", "The office is open from nine to five."),
    ("how to return a product", "Send the parcel back within thirty days."),
    ("lost password", "Click the link below the form to choose a new password."),
    ("delivery time", "Parcels arrive within three working days."),
    ("pay by invoice", "Companies can pay within two weeks of receiving the bill."),
    ("repair", "Bring broken lamps to our workshop in the old town."),
]

# %%
model = bert_tf.fine_tune.retrieve(
    train,
    "bert-base-uncased",
    "runs/help",
    num_train_epochs=4,
    train_batch_size=3,
    max_seq_length=32,
    max_query_length=16,
)

# %%
model.predict(["I forgot my password", "when will it arrive"], top_k=2)
