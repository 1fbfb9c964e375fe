"""The supports of a model, in a store that is compiled, or plain Python without a compiler.

- `learner`: what a store asks of a model that learns;
- `hypothesis`: what a model's hooks may ask of its supports;
- `supports`, `shared_supports`: one hypothesis in a store of its own, and several in one store;
- `coefficients`, `classes`: coefficients by hypothesis, and what a store needs to score them all;
- `built`: the store in use, `columns` or `plain`, and what is compiled with it;
- `precision`: the setting for columns of float32 or float64;
- `columns`: the compiled store, from the files of that name and the C headers;
- `plain`: the same in plain Python, its oracle;
- `calibration`: probabilities from scores;
- `refusals`: what both stores say where they refuse;
- `check`: refuses stored states that would lead compiled code out of its memory;
- `constants`: of both stores.

Nothing here imports the template or an algorithm. `prefix_votes` alone serves a single one,
the `VotedPerceptron`.
"""
