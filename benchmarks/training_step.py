"""Times one pretraining step in three libraries, and its matrix products alone.

Every library trains the same model on the same batch with dropout, weight decay and
clipping. Hugging Face and this package compute both losses, KerasHub the masked-word
loss alone. The last rows of each table are the bounds: the step's matrix products
without anything else. This package computes the last layer only at the positions that
are read, so it has a bound of its own. The share of the bound is the time of the
library's products divided by that of its step.

    make benchmark-training_step                 # Everything; about 25 minutes.
    python benchmarks/training_step.py --sizes=mini --dtypes=bfloat16 --rounds=5
"""

import statistics
import sys
import time

import numpy as np
import report

STARTED = time.time()  # The first step of a peer includes its imports from here on.
BATCHES = {"base": (8, 128, 20), "mini": (32, 128, 20)}  # Rows, pieces, masked pieces.
WIDTHS = {"base": (12, 768), "mini": (4, 256)}  # Layers, width.
VOCAB_SIZE = 30522
LEARNING_RATE = 1e-4
# A measurement takes this many steps, about two seconds.
STEPS = {"base": 2, "mini": 4}
BOUND = "matrix products alone"
OUR_BOUND = "matrix products of bert_tf alone"
OURS = "bert_tf"
# Name in the table -> the peer, and its mode.
PEERS = {
    OURS: ("bert_tf", "eager"),
    "Hugging Face": ("hugging_face", "eager"),
    "Hugging Face, `torch.compile`": ("hugging_face", "compiled"),
    "KerasHub": ("keras_hub", "eager"),
    BOUND: ("products", "all"),
    OUR_BOUND: ("products", "read"),
}
HEADER = (
    *("model", "dtype", "library", "seconds per step", "processor seconds"),
    *("time / ours", "share of the bound", "first step, s", "peak memory, GB"),
)


def main():
    """Measures every size and dtype, and writes the table."""
    parser = report.argument_parser(__doc__)
    parser.add_argument("--sizes", default="base,mini", help="model sizes")
    parser.add_argument("--dtypes", default="bfloat16,float32", help="dtypes to run in")
    parser.add_argument("--rounds", type=int, default=9, help="measurements per peer")
    args = parser.parse_args()
    for size in args.sizes.split(","):
        for dtype in args.dtypes.split(","):
            measure(size, dtype, args.rounds)


def measure(size, dtype, count):
    """Measures one model in one dtype and writes its rows.

    Args:
        size: "base" or "mini".
        dtype: "float32" or "bfloat16".
        count: measurements per peer.
    """
    peers = {}
    # Started one after the other, so that each first step has the machine to itself.
    for name, (peer, mode) in PEERS.items():
        python = report.peers_python() if peer == "hugging_face" else sys.executable
        # This package gets what its users have. Its steps are as fast on processors
        # without AMX, and its first step is faster with several arenas.
        env = {} if name == OURS else report.KEEPS_MEMORY
        task = {"size": size, "dtype": dtype, "mode": mode}
        peers[name] = report.start(__file__, peer, task, python=python, env=env)
    rounds = report.interleave(peers, count)
    seconds = {name: [one["seconds"] for one in rounds[name]] for name in peers}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    num_rows, length, _ = BATCHES[size]
    rows = []
    for name, peer in peers.items():
        is_bound = name in (BOUND, OUR_BOUND)
        bound = medians[OUR_BOUND if name == OURS else BOUND]
        rows.append(
            [
                f"{size.capitalize()}, {num_rows} × {length}",
                *(dtype, name),
                report.median_and_spread(seconds[name]),
                statistics.median(one["cpu_seconds"] for one in rounds[name]),
                medians[name] / medians[OURS],
                None if is_bound else f"{bound / medians[name]:.0%}",
                None if is_bound else round(peer.facts["first_seconds"], 1),
                peer.close() / 1e9,
            ]
        )
    report.write_table(
        "Pretraining step",
        HEADER,
        rows,
        num_keys=3,
        versions=report.all_versions(peers),
    )


def config_of(layers, width, *, vocab_size=VOCAB_SIZE, dropout=0.1, positions=512):
    """Returns the content of bert_config.json."""
    return {
        "vocab_size": vocab_size,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": max(1, width // 64),
        "intermediate_size": 4 * width,
        "hidden_act": "gelu",
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "max_position_embeddings": positions,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
    }


def batch_of(size):
    """Returns a batch of random pieces under this package's names, int32."""
    rows, length, masked = BATCHES[size]
    rng = np.random.default_rng(12345)
    ids = rng.integers(1000, VOCAB_SIZE, (rows, length))
    positions = np.argsort(rng.random((rows, length)), axis=1)[:, :masked]
    positions = np.sort(positions, axis=1)
    columns = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.tile(np.arange(length) * 2 // length, (rows, 1)),
        "masked_lm_positions": positions,
        "masked_lm_ids": np.take_along_axis(ids, positions, axis=1),
        "next_sentence_labels": rng.integers(0, 2, rows),
    }
    return {name: values.astype(np.int32) for name, values in columns.items()}


def serve(task, take_steps, *packages):
    """Takes the first steps of a peer, then answers; see `report.serve`.

    Args:
        task: with the "size".
        take_steps: function from a number of steps to the last step's loss.
        *packages: whose versions are reported.
    """
    take_steps(1)
    first_seconds = time.time() - STARTED
    take_steps(2)
    count = STEPS[task["size"]]

    def measure():
        started, cpu_started = time.perf_counter(), time.process_time()
        take_steps(count)
        seconds = (time.perf_counter() - started) / count
        return {
            "seconds": seconds,
            "cpu_seconds": (time.process_time() - cpu_started) / count,
        }

    report.serve(
        measure, first_seconds=first_seconds, versions=report.versions(*packages)
    )


def serve_bert_tf(task):
    """Serves this package's step, as run_pretraining takes it."""
    import tensorflow as tf

    import bert_tf
    from bert_tf.optimization import adam_weight_decay
    from bert_tf.training import steps

    dtype = {"bfloat16": "mixed_bfloat16"}.get(task["dtype"], task["dtype"])
    config = bert_tf.BertConfig.from_dict(config_of(*WIDTHS[task["size"]]))
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = bert_tf.BertPretrainer(config, dtype=dtype)
        model.build()
        optimizer = adam_weight_decay.create_optimizer(LEARNING_RATE, 1_000_000, 10_000)
        optimizer.build(model.trainable_variables)
    train_steps = steps.build_train_steps(model, optimizer, strategy, random_seed=12345)
    batch = batch_of(task["size"])
    rows = len(batch["input_ids"])
    batch |= {
        "masked_lm_weights": np.ones(batch["masked_lm_ids"].shape, np.float32),
        steps.EXAMPLE_INDEX: np.arange(rows, dtype=np.int64),
    }
    numbers = tf.data.Dataset.counter()
    batches = iter(
        numbers.map(lambda step: batch | {steps.STEP: tf.repeat(step, rows)})
    )

    def take_steps(count):
        return float(train_steps(batches, tf.constant(count))["loss"][-1])

    serve(task, take_steps, "tensorflow", "keras")


def serve_hugging_face(task):
    """Serves transformers on PyTorch, in a plain loop.

    It is fast in every way that the library offers on a CPU: bfloat16 autocast, fused
    AdamW, scaled-dot-product attention, and logits of the masked positions only.
    """
    import torch
    import transformers

    torch.set_num_threads(report.num_cores())
    torch.manual_seed(12345)
    # The release's GELU, as one fused operation; "gelu_new" takes several.
    activation = {"hidden_act": "gelu_pytorch_tanh"}
    config = transformers.BertConfig(**config_of(*WIDTHS[task["size"]]) | activation)
    model = transformers.BertForPreTraining(config)
    model.train()
    optimizer = torch_optimizer(model, LEARNING_RATE)
    batch = {k: torch.from_numpy(v).long() for k, v in batch_of(task["size"]).items()}
    cross_entropy = torch.nn.functional.cross_entropy

    def loss_of(batch):
        encoded = model.bert(
            input_ids=batch["input_ids"],
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
        )
        hidden = encoded.last_hidden_state  # [B, S, H]
        positions = batch["masked_lm_positions"][..., None]
        positions = positions.expand(-1, -1, hidden.shape[-1])
        logits = model.cls.predictions(torch.gather(hidden, 1, positions))  # [B, M, V]
        masked = cross_entropy(
            logits.flatten(0, 1).float(), batch["masked_lm_ids"].flatten()
        )
        scores = model.cls.seq_relationship(encoded.pooler_output)
        return masked + cross_entropy(scores.float(), batch["next_sentence_labels"])

    if task["mode"] == "compiled":
        loss_of = torch.compile(loss_of)
    is_bfloat16 = task["dtype"] == "bfloat16"

    def take_steps(count):
        for _ in range(count):
            with torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
                loss = loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    serve(task, take_steps, "torch", "transformers")


def torch_optimizer(model, rate):
    """Returns PyTorch's fused AdamW, with weight decay as in the release."""
    import torch

    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": 0.01},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, eps=1e-6, fused=True)


def serve_keras_hub(task):
    """Serves KerasHub's masked-word task; it has no next-sentence head."""
    import keras
    import tensorflow as tf

    dtype = {"bfloat16": "mixed_bfloat16"}.get(task["dtype"], task["dtype"])
    model = keras_hub_model(config_of(*WIDTHS[task["size"]]), dtype)
    model.compile(
        optimizer=keras_optimizer(LEARNING_RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    batch = batch_of(task["size"])
    features = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
        "mask_positions": batch["masked_lm_positions"],
    }
    columns = (features, batch["masked_lm_ids"], np.ones_like(batch["masked_lm_ids"]))
    columns = tf.nest.map_structure(tf.constant, columns)

    def take_steps(count):
        for _ in range(count):
            loss, *_ = np.ravel(model.train_on_batch(*columns))
        return float(loss)

    serve(task, take_steps, "keras-hub", "keras", "tensorflow")


def keras_hub_model(config, dtype):
    """Returns KerasHub's masked-word model of a bert_config.json."""
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        dropout=config["hidden_dropout_prob"],
        max_sequence_length=config["max_position_embeddings"],
        num_segments=2,
        dtype=dtype,
    )
    return keras_hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)


def keras_optimizer(rate):
    """Returns Keras's AdamW, with weight decay and clipping as in the release."""
    import keras

    optimizer = keras.optimizers.AdamW(
        rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def serve_products(task):
    """Serves only the matrix products of the step, as the bound.

    Every product with a kernel is computed forward and backward (twice), and so are
    those of attention and of the masked-word head. They run in TensorFlow, which calls
    oneDNN. In the mode "read", the last layer is computed only at the positions that
    the heads read, the masked ones and [CLS], as in this package.
    """
    import tensorflow as tf

    operands = product_operands(task)
    # The optimizer of graphs would compute equal products only once.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

    @tf.function(autograph=False)
    def products():
        computed = []
        for inputs, kernel, outputs, count in operands:
            for _ in range(count):
                computed += [
                    tf.matmul(inputs, kernel),
                    tf.matmul(outputs, kernel, transpose_b=True),
                    tf.matmul(inputs, outputs, transpose_a=True),
                ]
        first = [tf.cast(tf.reshape(one, [-1])[0], tf.float32) for one in computed]
        return tf.add_n(first)

    def take_steps(count):
        for _ in range(count):
            total = products()
        return float(total)

    serve(task, take_steps, "tensorflow")


def product_operands(task):
    """Returns (left, right, their product, how often) of all products of a step."""
    import tensorflow as tf

    rows, length, masked = BATCHES[task["size"]]
    layers, width = WIDTHS[task["size"]]
    heads = width // 64
    dtype = tf.dtypes.as_dtype(task["dtype"])
    last = masked + 1 if task["mode"] == "read" else length  # Positions, last layer.

    def random(*shape):  # Variables are not folded as constants.
        return tf.Variable(tf.cast(tf.random.normal(shape), dtype))

    dense = [  # (rows, from width, to width, how often)
        (rows * length, width, width, 4 * (layers - 1) + 2),  # Last two: keys, values.
        (rows * length, width, 4 * width, layers - 1),
        (rows * length, 4 * width, width, layers - 1),
        (rows * last, width, width, 2),
        (rows * last, width, 4 * width, 1),
        (rows * last, 4 * width, width, 1),
        (rows * masked, width, width, 1),
        (rows * masked, width, VOCAB_SIZE, 1),
    ]
    operands = [
        (random(count, a), random(a, b), random(count, b), times)
        for count, a, b, times in dense
    ]
    size = width // heads
    for positions, count in ((length, layers - 1), (last, 1)):
        # Each twice: queries and keys to scores, and scores and values to context.
        operands.append(
            (
                random(rows, heads, positions, size),
                random(rows, heads, size, length),
                random(rows, heads, positions, length),
                2 * count,
            )
        )
    return operands


if __name__ == "__main__":
    report.run(
        main,
        bert_tf=serve_bert_tf,
        hugging_face=serve_hugging_face,
        keras_hub=serve_keras_hub,
        products=serve_products,
    )
