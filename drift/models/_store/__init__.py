"""The supports of a model, in a store that is compiled, or plain Python without a compiler.

`supports` numbers the supports of one hypothesis from the oldest; `shared_supports` does it for
several hypotheses over one store, whose `coefficients` are a matrix. Both use the store that `built` chooses: `columns`, compiled from
the files of that name, or `plain`, its oracle. `classes` has the hypotheses of several classes as a
store reads them. `calibration` makes probabilities of scores. `check` refuses stored states that
would lead compiled code out of its memory; `constants` hold for both stores.

A store imports no algorithm; only its `vote` is for a single one, the `VotedPerceptron`. It takes
the steps of binary models: it reads `_update_margin`, `_weight`, `_kind` and `_labels`, calls
`_should_update`, `_update`, `_would_adopt` and `_adopt`, and counts `n_mistakes` and `n_updates`.
`plain` leaves the step itself to the model's `_step`.
"""
