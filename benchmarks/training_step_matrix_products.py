"""Part of training_step: only the matrix products of the step, as the bound.

Every product with a kernel is computed forward and backward (twice), and so are those
of attention and of the masked-word head. They run in TensorFlow, which calls oneDNN.
In the mode "read", the last layer is computed only at the positions that the heads
read, the masked ones and [CLS], as in this package; in the mode "all", everywhere.
"""

import training_step_task

task = training_step_task.Task()

import tensorflow as tf  # noqa: E402


def main():
    """Answers the driver with the time of all products."""
    rows, length, masked = training_step_task.BATCHES[task.size]
    layers, width, heads = training_step_task.WIDTHS[task.size]
    dtype = tf.dtypes.as_dtype(task.dtype)
    pieces = rows * length
    last = masked + 1 if task.mode == "read" else length  # Positions of the last layer.
    dense = [  # (rows, from width, to width, how often)
        (pieces, width, width, 4 * (layers - 1) + 2),  # The last two: keys and values.
        (pieces, width, 4 * width, layers - 1),
        (pieces, 4 * width, width, layers - 1),
        (rows * last, width, width, 2),
        (rows * last, width, 4 * width, 1),
        (rows * last, 4 * width, width, 1),
        (rows * masked, width, width, 1),
        (rows * masked, width, training_step_task.VOCAB_SIZE, 1),
    ]
    operands = [
        (random((count, a), dtype), random((a, b), dtype), random((count, b), dtype))
        for count, a, b, _ in dense
    ]
    attention = [  # (queries, keys or values, scores, how often)
        (
            random((rows, heads, positions, width // heads), dtype),
            random((rows, heads, length, width // heads), dtype),
            random((rows, heads, positions, length), dtype),
            count,
        )
        for positions, count in ((length, layers - 1), (last, 1))
    ]

    # The optimizer of graphs would compute equal products only once.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

    @tf.function(autograph=False)
    def products():
        used = []
        for (inputs, kernel, outputs), (*_, count) in zip(operands, dense, strict=True):
            used += [
                product
                for _ in range(count)
                for product in (
                    tf.matmul(inputs, kernel),
                    tf.matmul(outputs, kernel, transpose_b=True),
                    tf.matmul(inputs, outputs, transpose_a=True),
                )
            ]
        for query, key, scores, count in attention:
            used += [
                product
                for _ in range(2 * count)  # Each twice, once for keys, once for values.
                for product in (
                    tf.matmul(query, key, transpose_b=True),
                    tf.matmul(scores, key),
                    tf.matmul(scores, query, transpose_a=True),
                )
            ]
        return tf.add_n([tf.cast(tf.reshape(one, [-1])[0], tf.float32) for one in used])

    def take_steps(count):
        for _ in range(count):
            total = products()
        return float(total)

    task.serve(take_steps, ("tensorflow",))


def random(shape, dtype):
    """Returns a variable of random numbers, which are not folded as constants."""
    return tf.Variable(tf.cast(tf.random.normal(shape), dtype))


main()
