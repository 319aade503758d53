import keras
import numpy as np

from bert_tf.modeling import recurrent


def test_the_vector_of_a_text_is_where_each_direction_has_read_it_all():
    keras.utils.set_random_seed(2)
    bilstm = recurrent.BiLSTM(3, 1)
    bilstm.build(5)
    inputs = np.random.default_rng(1).normal(size=(2, 4, 5)).astype("float32")
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], "int32")
    outputs = np.asarray(bilstm(inputs, mask))
    expected = [
        np.concatenate([outputs[0, 3, :3], outputs[0, 0, 3:]]),
        np.concatenate([outputs[1, 1, :3], outputs[1, 0, 3:]]),
    ]
    vectors = np.asarray(bilstm.text_vectors(inputs, mask))
    np.testing.assert_array_equal(vectors, expected)
    # If all pieces are real, only the text that had padding changes.
    whole = np.asarray(bilstm.text_vectors(inputs, np.ones_like(mask)))
    np.testing.assert_allclose(whole[0], vectors[0], atol=1e-6)
    assert np.max(np.abs(whole[1] - vectors[1])) > 1e-2
