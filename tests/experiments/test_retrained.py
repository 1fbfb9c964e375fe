from drift.experiments.rivals import Retrained


def test_it_predicts_the_commonest_label_until_it_has_trained_on_two():
    model = Retrained()
    assert model.predict_one({"a": 1.0}) is None
    for i, label in enumerate(["no", "yes", "yes", *5 * ["no"]]):  # it trains after 10 rows
        model.learn_one({"a": float(i)}, label)
        if i == 2:
            assert model.predict_one({"a": 0.0}) == "yes"
    assert model.predict_proba_one({"a": 1.0}) == {"no": 0.75, "yes": 0.25}
    model = Retrained()
    for i in range(30):  # with one label there is nothing to train on
        model.learn_one({"a": float(i)}, "no")
    assert model.predict_one({"a": 1.0}) == "no"


def test_it_keeps_its_trees_while_its_window_has_one_label():
    model = Retrained(every=100, window=100)
    for i in range(200):
        model.learn_one({"a": float(i % 7), "b": 0.0}, i % 7 > 3)
    for _ in range(100):
        model.learn_one({"b": 0.0, "a": 6.0}, True)  # other columns, one label
    assert [model.predict_one({"b": 0.0, "a": float(a)}) for a in (2, 6)] == [False, True]
    for _ in range(100):
        model.learn_one({"b": 0.0}, True)  # a column less
    assert [model.predict_one({"a": float(a)}) for a in (2, 6)] == [False, True]
