import keras
import numpy as np

from bert_tf.modeling import recurrent


def test_the_outputs_do_not_depend_on_where_the_padding_is():
    keras.utils.set_random_seed(2)
    bilstm = recurrent.BiLSTM(3, 2)
    bilstm.build(5)
    text = np.random.default_rng(1).normal(size=(3, 5))
    masks = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1]], "int32")
    inputs = np.full((3, 5, 5), 7.0, "float32")
    inputs[masks > 0] = np.tile(text, (3, 1))
    outputs = np.asarray(bilstm(inputs, masks))[masks > 0].reshape(3, 3, 6)
    np.testing.assert_allclose(outputs, outputs[:1].repeat(3, axis=0), atol=1e-6)
