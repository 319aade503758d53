"""Trains bert-tf-mini, the checkpoint that ships with the package, on one GPU.

    bert_tf prepare --input_file='novels/*.txt' --output_dir=text
    bert_tf vocabulary --input_file='text/*.txt' --vocab_file=vocab.txt \\
        --vocab_size=8000
    python recipes/bert_tf_mini.py ids --vocab_file=vocab.txt \\
        --input_file='text/*.txt' --output=train.npy
    python recipes/bert_tf_mini.py train --vocab_file=vocab.txt \\
        --input_file=train.npy --output=run.safetensors
    python recipes/bert_tf_mini.py save --vocab_file=vocab.txt \\
        --input_file=run.safetensors --output=bert-tf-mini

Model, loss and optimizer are the package's, on Keras's JAX backend. The whole text is
in the GPU's memory. Every step draws new rows and new masks there, as functions of the
seed and the number of the step: a row begins at a random sentence, ends where the last
whole sentence does, and half of the rows have a second segment, so that its embedding
is trained too. There is no next-sentence task.
"""

import argparse
import functools
import glob
import hashlib
import os
import pathlib
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np

MODEL_SIZE = "mini"
# Lengths of rows, of chunk after chunk of steps. Every step has PIECES pieces.
LENGTHS = (128, 128, 128, 32, 128, 128, 128, 512)
CHUNK = 8
PIECES, NUM_STEPS, LEARNING_RATE, SEED = 65536, 39016, 1e-3, 12345
MASK_SHARE = 0.15
LAST_PIECE = 1 << 15  # Added to the id of a sentence's last piece.
WARMUP_SHARE = 0.06
LOG_CHUNKS = 32
# Large weights and waves as positions: small models learn sooner to use context.
# Without dropout, held-out accuracy rises until the end.
START = {
    "initializer_range": 0.06,
    "position_initializer": "sinusoidal",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def ids(options):
    """Writes the word pieces of a text as an array of uint16."""
    from bert_tf.tokenization import full

    tokenizer = full.FullTokenizer(options.vocab_file, do_lower_case=True)
    sentences = []
    for path in sorted(glob.glob(options.input_file)):
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            numbers = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line))
            if numbers:
                numbers[-1] += LAST_PIECE
                sentences.append(np.array(numbers, np.uint16))
    pieces = np.concatenate(sentences)
    np.save(options.output, pieces)
    digest = hashlib.sha256(pieces.tobytes()).hexdigest()
    print(f"{len(sentences):,} sentences, {len(pieces):,} pieces, SHA-256 {digest}")


def draw_batch(key, text, special, *, num_rows, length):
    """Returns the features of new rows, B = num_rows, with new masks."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(key, 6)
    space = length - 3  # [CLS] and two [SEP].
    number = jax.random.randint(keys[0], (num_rows,), 0, text["starts"].shape[0])
    index = text["starts"][number][:, None] + jnp.arange(space)
    pieces = text["pieces"][index % text["pieces"].shape[0]].astype("int32")
    place = jnp.arange(1, space + 1)
    ends = jnp.where(pieces >= LAST_PIECE, place, 0)  # [B, S - 3]
    size = jnp.max(ends, axis=1, keepdims=True)  # [B, 1]
    size = jnp.where(size == 0, space, size)
    # The first segment ends where one of the sentences does.
    scores = jax.random.uniform(keys[1], ends.shape) * ((ends > 0) & (ends < size))
    split = jnp.argmax(scores, axis=1)[:, None] + 1
    is_pair = jax.random.uniform(keys[2], size.shape) < 0.5
    is_pair &= jnp.max(scores, axis=1, keepdims=True) > 0
    split = jnp.where(is_pair, split, size)
    total = size + 2 + is_pair

    place = jnp.arange(length)[None, :]
    pieces %= LAST_PIECE
    first = jnp.pad(pieces, ((0, 0), (1, 2)))  # [B, S]
    second = jnp.pad(pieces, ((0, 0), (2, 1)))
    ids = jnp.where(place <= split, first, second)
    is_sep = (place == split + 1) | (place == total - 1)
    ids = jnp.where(is_sep, special["[SEP]"], ids)
    ids = jnp.where(place == 0, special["[CLS]"], ids)
    ids = jnp.where(place < total, ids, 0)

    num_masks = -(-length * 15 // 100)
    may_mask = (place > 0) & (place < total) & ~is_sep
    scores = jax.random.uniform(keys[3], ids.shape, minval=1.0, maxval=2.0) * may_mask
    positions = jax.lax.top_k(scores, num_masks)[1]  # [B, M]
    wanted = jnp.clip(jnp.round(MASK_SHARE * size), 1, num_masks)
    weights = (jnp.arange(num_masks)[None, :] < wanted).astype("float32")
    positions = jnp.where(weights > 0, positions, 0)
    labels = jnp.take_along_axis(ids, positions, axis=1)
    kind = jax.random.uniform(keys[4], labels.shape)
    other = jax.random.randint(keys[5], labels.shape, 0, special["size"])
    masked = jnp.where(kind < 0.9, other, labels)
    masked = jnp.where(kind < 0.8, special["[MASK]"], masked)
    masked = jnp.where(weights > 0, masked, special["[CLS]"])
    return {
        "input_ids": ids.at[jnp.arange(num_rows)[:, None], positions].set(masked),
        "input_mask": (place < total).astype("int32"),
        "segment_ids": ((place > split + 1) & (place < total)).astype("int32"),
        "masked_lm_positions": positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": weights,
    }


def build_steps(model, optimizer, special):
    """Returns the compiled function of a chunk of steps."""
    import jax
    import jax.numpy as jnp
    import keras

    frozen = [(v, v.value) for v in model.non_trainable_variables]
    rate_index = [v.name for v in optimizer.variables].index("learning_rate")
    seed = jax.random.key(SEED)

    def loss_of(weights, features):
        state = [*zip(model.trainable_variables, weights, strict=True), *frozen]
        keys = jnp.zeros(features["input_ids"].shape[:1], "uint32")  # No dropout.
        with keras.StatelessScope(state_mapping=state):
            outputs = model.training_outputs(features, keys)
            return model.total_loss(features, outputs)

    @functools.partial(jax.jit, donate_argnums=(0, 1), static_argnames="length")
    def take_steps(weights, slots, text, numbers, rates, length):
        def take_step(state, number_and_rate):
            weights, slots = state
            number, rate = number_and_rate
            shape = {"num_rows": PIECES // length, "length": length}
            key = jax.random.fold_in(seed, number)
            features = draw_batch(key, text, special, **shape)
            loss, gradients = jax.value_and_grad(loss_of)(weights, features)
            slots = [*slots[:rate_index], rate, *slots[rate_index + 1 :]]
            weights, slots = optimizer.stateless_apply(slots, gradients, weights)
            return (weights, slots), loss

        state, losses = jax.lax.scan(take_step, (weights, slots), (numbers, rates))
        return *state, losses

    return take_steps


def train(options):
    """Trains, and writes the weights as float32 in the release's names."""
    import jax
    import safetensors.numpy

    from bert_tf.checkpoints import names
    from bert_tf.modeling import config as config_module
    from bert_tf.modeling import pretrainer
    from bert_tf.optimization import adam_weight_decay

    text = _load(options.input_file)
    special = _special(options)
    config = config_module.BertConfig.of_size(
        MODEL_SIZE, vocab_size=special["size"], **START
    )
    model = pretrainer.BertPretrainer(
        config, next_sentence=False, dtype="mixed_bfloat16"
    )
    model.build()
    optimizer = adam_weight_decay.AdamWeightDecay(
        1.0, bias_correction=True, global_clipnorm=1.0
    )
    optimizer.build(model.trainable_variables)
    take_steps = build_steps(model, optimizer, special)
    state = [
        [jax.numpy.array(v.value) for v in one]
        for one in (model.trainable_variables, optimizer.variables)
    ]
    started = time.perf_counter()
    for first in range(0, NUM_STEPS, CHUNK):
        numbers = np.arange(first, first + CHUNK, dtype=np.int32)
        share = (numbers.astype(np.float32) + 1) / NUM_STEPS
        rates = LEARNING_RATE * np.minimum(share / WARMUP_SHARE, 1) * (1 - share)
        length = LENGTHS[first // CHUNK % len(LENGTHS)]
        *state[:], losses = take_steps(*state, text, numbers, rates, length)
        if first // CHUNK % LOG_CHUNKS == 0:
            # Waiting for the losses also keeps the queue of the device short.
            loss, seconds = float(losses.mean()), time.perf_counter() - started
            print(f"step {first + CHUNK}, {seconds:.0f} s, loss {loss:.3f}", flush=True)
    weights = zip(model.trainable_variables, state[0], strict=True)
    own_names = {id(v): n for n, v in names.checkpoint_variables(model).items()}
    safetensors.numpy.save_file(
        {own_names[id(v)]: np.asarray(w) for v, w in weights},
        options.output,
    )


def save(options):
    """Writes trained weights as a Hugging Face folder, in float16."""
    import safetensors.numpy

    from bert_tf.checkpoints import heads
    from bert_tf.checkpoints import hugging_face
    from bert_tf.checkpoints import source as source_module
    from bert_tf.checkpoints import text_encoding
    from bert_tf.modeling import config as config_module
    from bert_tf.tokenization import vocabulary as vocabulary_module

    weights = safetensors.numpy.load_file(options.input_file)
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    source = source_module.Source(
        path=options.input_file,
        format="bert",
        shapes={name: array.shape for name, array in weights.items()},
        read_each=lambda names: ((name, weights[name]) for name in names),
        head=heads.Head(kind="masked_lm"),
        # The release's dropout and deviation, for fine-tuning.
        config=config_module.BertConfig.of_size(MODEL_SIZE, vocab_size=len(vocabulary)),
        text=text_encoding.TextEncoding(vocabulary=vocabulary, do_lower_case=True),
    )
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True)
    hugging_face.write(source, str(folder))
    path = folder / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    arrays = {name: array.astype(np.float16) for name, array in arrays.items()}
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"})


def _load(path):
    """Returns the text of a file, in the device's memory."""
    import jax

    pieces = np.load(path)
    starts = np.flatnonzero(np.append(True, pieces[:-1] >= LAST_PIECE))
    return jax.device_put({"pieces": pieces, "starts": starts.astype(np.int32)})


def _special(options):
    pieces = pathlib.Path(options.vocab_file).read_text(encoding="utf-8").splitlines()
    special = {piece: pieces.index(piece) for piece in ("[CLS]", "[SEP]", "[MASK]")}
    return {**special, "size": len(pieces)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("ids", "train", "save"))
    for flag in ("vocab_file", "input_file", "output"):
        parser.add_argument(f"--{flag}", required=True)
    parsed = parser.parse_args()
    {"ids": ids, "train": train, "save": save}[parsed.command](parsed)
