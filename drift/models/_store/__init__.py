"""The supports of a model, in a store that is compiled, or plain Python without a compiler.

`supports` numbers the supports of one hypothesis from the oldest; `shared_supports` does it for
several hypotheses over one store; `classes` are hypotheses as compiled code reads them. Both ask
the store that `built` chooses: `columns`, compiled from the files of that name, or `plain`, its
oracle. `calibration` makes probabilities of scores. `check` refuses stored states that would lead
compiled code out of its memory; `constants` hold for both stores.

Nothing here knows an algorithm: a store calls a model's hooks within `run_step`, and changes
nothing of a model but its counts.
"""
