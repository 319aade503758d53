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


def test_the_vector_of_a_text_does_not_depend_on_where_its_padding_is():
    keras.utils.set_random_seed(2)
    bilstm = recurrent.BiLSTM(3, 2)
    bilstm.build(5)
    text = np.random.default_rng(1).normal(size=(3, 5))
    masks = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1]], "int32")
    inputs = np.full((3, 5, 5), 7.0, "float32")
    inputs[masks > 0] = np.tile(text, (3, 1))
    vectors = np.asarray(bilstm.text_vectors(inputs, masks))
    np.testing.assert_allclose(vectors, vectors[:1].repeat(3, axis=0), atol=1e-6)
