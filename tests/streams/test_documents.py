import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import load_iris

from drift.errors import FeatureError, FeatureTypeError, ParameterError
from drift.streams import Documents

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
PAIRS = st.lists(
    st.tuples(
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), NUMBERS, max_size=5),
        st.frozensets(st.sampled_from(["a", "b", "c"])),
    )
)


@settings(deadline=None)
@given(PAIRS)
def test_pairs_come_back_without_their_zeros(pairs):
    expected = [({k: v for k, v in x.items() if v}, topics) for x, topics in pairs]
    assert list(Documents.from_pairs(pairs)) == expected


@settings(deadline=None)
@given(PAIRS)
def test_rows_are_canonical(pairs):
    rows = Documents.from_pairs(pairs).rows
    assert isinstance(rows, csr_array)
    assert rows.dtype == np.float64
    assert rows.has_canonical_format
    assert rows.data.all()


def test_duplicates_are_added_and_the_callers_matrix_is_left_alone():
    rows = csr_array(([1.0, 2.0, 0.0], [1, 1, 0], [0, 3]), shape=(1, 2))
    documents = Documents(rows, np.ones((1, 1), bool), ("a",))
    assert list(documents.features()) == [{1: 3.0}]
    assert rows.nnz == 3


def test_columns_from_2_to_the_31_on_keep_their_numbers():
    rows = csr_array(([1.0, 2.0], [5, 2**32 + 5], [0, 1, 2]), shape=(2, 2**33))
    documents = Documents(rows, np.ones((2, 1), bool), ("a",))
    assert list(documents.features()) == [{5: 1.0}, {2**32 + 5: 2.0}]


def test_columns_without_names_are_python_ints():
    ((features, topics),) = Documents.from_arrays([[0.0, 4.0]], ["a"])
    assert [type(key) for key in features] == [int]
    assert [type(value) for value in features.values()] == [float]
    assert topics == {"a"}


@pytest.mark.parametrize("labels", [7, [7], (7,), {7}, "7", frozenset(["7"])])
def test_topics_in_any_form(labels):
    assert Documents.from_pairs([({"x": 1}, labels)]).topic_names == ("7",)


def test_nan_means_absent_in_pairs_and_arrays():
    nan = float("nan")
    assert list(Documents.from_pairs([({"x": nan, "y": 1}, "a")]).features()) == [{"y": 1.0}]
    assert list(Documents.from_arrays([[nan, 1.0]], ["a"]).features()) == [{1: 1.0}]


def test_a_word_among_the_numbers_is_named():
    with pytest.raises(FeatureTypeError, match=r"'city' holds 'Oslo'.*OneHotEncoder"):
        Documents.from_pairs([({"city": "Oslo"}, "a")])


def test_an_infinite_value_is_named():
    with pytest.raises(FeatureError, match="'x' is infinite"):
        Documents.from_pairs([({"x": float("-inf")}, "a")])
    with pytest.raises(ParameterError, match="row 1, column 0 holds inf"):
        Documents.from_arrays([[1.0], [np.inf]], ["a", "b"])


@pytest.mark.parametrize("convert", [np.array, csr_array, csr_matrix])
def test_an_indicator_matrix_dense_or_sparse(convert):
    y = convert([[1, 0], [1, 1], [0, 0]])
    documents = Documents.from_arrays(np.eye(3), y, topic_names=["a", "b"])
    assert [topics for _, topics in documents] == [{"a"}, {"a", "b"}, set()]


@pytest.mark.parametrize(
    ("y", "names", "problem"),
    [
        ([[1, 0]], None, "needs topic_names"),
        ([[1, 2]], ["a", "b"], "indicator of 0 and 1"),
        (["x"], ["a"], "drop them"),
        ([[1, 0]], ["a", "a"], "'a' occurs twice"),
        ([[1, 0]], ["a"], r"shape \(1, 2\)"),
        (["x", "y"], None, "1 row "),
    ],
)
def test_labels_that_do_not_fit(y, names, problem):
    with pytest.raises(ParameterError, match=problem):
        Documents.from_arrays([[1.0]], y, topic_names=names)


def test_hundreds_of_features_have_their_names():
    names = [f"pixel {number}" for number in range(784)]
    documents = Documents.from_arrays(np.ones((1, 784)), ["a"], feature_names=names)
    assert list(documents.feature_names) == names


def test_feature_names_that_do_not_fit():
    with pytest.raises(ParameterError, match="1 feature name for 2 columns"):
        Documents.from_arrays([[1.0, 2.0]], ["a"], feature_names=["x"])
    with pytest.raises(ParameterError, match="'x' occurs twice"):
        Documents.from_arrays([[1.0, 2.0]], ["a"], feature_names=["x", "x"])


def test_the_hash_of_files_stands_for_that_of_the_arrays():
    assert Documents.from_arrays([[1.0]], ["a"], sha256="f11e").head(1).sha256 == "f11e"


@pytest.mark.parametrize("n", [-1, 1.5])
def test_numbers_of_documents_and_topics_are_whole(n):
    documents = Documents.from_arrays([[1], [2], [3]], ["a", "b", "b"])
    for count in (documents.head, documents.most_frequent, lambda n: documents.most_frequent(1, n)):
        with pytest.raises(ParameterError, match=f"must be an integer of at least 0, not {n}"):
            count(n)


def test_scikit_learns_bunches():
    iris = load_iris()
    y = iris.target_names[iris.target]
    documents = Documents.from_arrays(iris.data, y, feature_names=iris.feature_names)
    assert documents.topic_names == ("setosa", "versicolor", "virginica")
    assert next(documents.features())["petal width (cm)"] == 0.2


def test_unknown_topics_are_named_with_similar_ones():
    documents = Documents.from_arrays(np.eye(2), ["ECAT", "MCAT"], name="news")
    with pytest.raises(ParameterError, match=r"news has no topic 'EKAT': did you mean 'ECAT'"):
        documents.has("EKAT")


def test_most_frequent_counts_in_the_head_and_breaks_ties_by_column():
    documents = Documents.from_arrays(np.ones((5, 1)), ["b", "a", "c", "c", "c"])
    assert documents.most_frequent(2) == ["c", "a"]
    assert documents.most_frequent(9, n=2) == ["a", "b"]


def test_head_is_a_view_that_keeps_the_source():
    documents = Documents.from_arrays(np.eye(4), list("abab"), name="x")
    head = documents.head(3)
    assert (len(head), head.n_features, head.name, head.sha256) == (3, 4, "x", documents.sha256)
    assert list(head) == list(documents)[:3]
    assert np.shares_memory(head.rows.data, documents.rows.data)
    assert documents.head(99) is documents
    with pytest.raises(ParameterError, match="at least 0"):
        documents.head(-1)


def test_the_fingerprint_tells_data_apart():
    prints = {
        Documents.from_arrays(X, y).sha256
        for X, y in [([[1.0]], ["a"]), ([[2.0]], ["a"]), ([[1.0]], ["b"]), ([[1.0, 0.0]], ["a"])]
    }
    assert len(prints) == 4
    assert Documents.from_arrays([[1.0]], ["a"]).sha256 in prints


def test_documents_are_frozen_and_pickle():
    documents = Documents.from_pairs([({"x": 1}, {"a", "b"}), ({}, set())])
    with pytest.raises(dataclasses.FrozenInstanceError):
        documents.name = "other"
    copy = pickle.loads(pickle.dumps(documents))
    assert list(copy) == list(documents)
    assert copy.sha256 == documents.sha256
