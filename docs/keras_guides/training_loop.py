# %% [markdown]
# # A training loop of your own
#
# The steps of Keras's guide "Writing a training loop from scratch in TensorFlow", with
# `BertModel` as a layer of a subclassed model. `training=True` turns its dropout on.

# %%
import keras
import numpy as np
import tensorflow as tf

import bert_tf

texts = [
    "Stir the soup until it thickens.",
    "Heavy rain is expected tonight.",
    "Bake the bread for forty minutes.",
    "A cold front brings snow to the hills.",
]
labels = np.array([0, 1, 0, 1])  # 0: cooking, 1: weather.

keras.utils.set_random_seed(1)
encoder, tokenizer = bert_tf.from_pretrained("bert-base-uncased", head="encoder")
batches = tf.data.Dataset.from_tensor_slices(
    (tokenizer(texts, max_seq_length=16), labels)
).batch(2)


# %%
class TopicModel(keras.Model):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.classify = keras.layers.Dense(2)

    def call(self, features, training=False):
        encoded = self.encoder(features, training=training)
        return self.classify(encoded["pooled_output"])


model = TopicModel(encoder)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(5e-4)
accuracy = keras.metrics.SparseCategoricalAccuracy()


# %%
@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        logits = model(features, training=True)
        loss = loss_of(labels, logits)
    gradients = tape.gradient(loss, model.trainable_weights)
    optimizer.apply(gradients, model.trainable_weights)
    accuracy.update_state(labels, logits)
    return loss


features, _ = next(iter(batches))
model(features)  # Creates the weights.
optimizer.build(model.trainable_weights)
losses = []
for _ in range(8):
    for features, labels in batches:
        losses.append(float(train_step(features, labels)))

# %%
float(accuracy.result()), losses[-1]
