import numpy as np

from bert_tf.tasks.classification import scores

TRUTH = np.array([0, 0, 0, 1, 1, 2])
PREDICTED = np.array([0, 0, 1, 1, 1, 0])


def test_each_class_has_its_scores_and_confusions():
    # Equal to classification_report and confusion_matrix of scikit-learn.
    table = scores.class_table(TRUTH, PREDICTED, ["rain", "sun", "snow"])
    assert table.split("\n") == [
        "class  precision  recall      F1  support",
        "rain      0.6667  0.6667  0.6667        3",
        "sun       0.6667  1.0000  0.8000        2",
        "snow      0.0000  0.0000  0.0000        1",
        "mean      0.4444  0.5556  0.4889        6",
        "",
        "true \\ predicted  rain  sun  snow",
        "rain                 2    1     0",
        "sun                  0    2     0",
        "snow                 1    0     0",
    ]


def test_texts_with_several_classes_have_scores_and_no_confusions():
    truth = np.array([[1, 0], [1, 1], [0, 0]])
    predicted = np.array([[1, 1], [0, 1], [0, 0]])
    assert scores.class_table(truth, predicted, ["a", "b"]).split("\n") == [
        "class  precision  recall      F1  support",
        "a         1.0000  0.5000  0.6667        2",
        "b         0.5000  1.0000  0.6667        1",
        "mean      0.7500  0.7500  0.6667        3",
    ]


def test_many_classes_have_their_most_frequent_confusions():
    labels = [f"class {number}" for number in range(21)]
    truth = np.array([*range(21), 3, 3, 5])
    predicted = np.array([*range(21), 7, 7, 6])
    lines = scores.class_table(truth, predicted, labels).split("\n")
    assert lines[-3:] == [
        "true     predicted  examples",
        "class 3    class 7         2",
        "class 5    class 6         1",
    ]
