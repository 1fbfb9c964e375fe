"""The supports of a model, in a store that is compiled, or plain Python without a compiler.

===================  ============================================================================
``constants``        Constants of both stores.
``refusals``         What both stores say where they refuse.
``precision``        Columns of float32 or float64, and what their values are divided by.
``calibration``      Probabilities from scores.
``check``            Checks of stored states: one is refused, or what is built is consistent.
``classes``          What a store needs to score several classes.
``stepped_model``    What a store asks of a model that learns.
``columns``          The compiled store. `columns.pyi` is the contract of both stores.
``plain``            The same in plain Python: the oracle of the compiled one.
``built``            The store in use, one of these two, and what is compiled with it.
``hypothesis``       What a model's hooks may ask of its supports.
``supports``         `SupportSet`: one hypothesis in a store of its own.
``coefficients``     Coefficients of several hypotheses over one store.
``shared_supports``  `SharedSupports`: one of several hypotheses in one store.
===================  ============================================================================

A file uses only files above it, and `columns.pyx` says how the compiled store is cut into files.
Nothing here imports the template or an algorithm. `prefix_votes` alone serves a single one, the
`VotedPerceptron`.

Words: a *support* is a stored example. Its *slot* is its place in the arrays, its *serial* counts
all supports ever added. Its *age rank*, `i`, counts the supports that are there from the oldest, 0;
negative: from the newest, -1. What is *by age* has an item for each age rank, what is *by slot* one
for each slot. A method that takes a slot says so in its name where another takes an age rank:
`evict_slot(slot)` and `evict(i)`. A *column* has the supports' values of one feature. The *point*
is the example or support that was read last. A *hypothesis* has a coefficient for each of its
supports.
"""
