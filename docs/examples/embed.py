# %% [markdown]
# # One vector per text
#
# A sentence encoder says itself how its vectors are computed. Any other checkpoint
# gives the mean over the word pieces. The vectors have length 1, so their products are
# cosines.

# %%
import bert_tf

texts = ["A man is eating food.", "A man eats a meal.", "The sky is blue today."]
vectors = bert_tf.embed("bert-base-uncased", texts)
vectors.shape

# %%
(vectors @ vectors.T).round(2)
