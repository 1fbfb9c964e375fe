"""What all models stand on; nothing here imports a model or a store.

- `labels`: what can name a class;
- `examples`: what can be learnt, and the error that says why something cannot;
- `rows`: the rows of an array as examples, and how compiled code reads them (`rows.pxi`);
- `rounding`: sums that are 0 where their terms cancel;
- `guard`: locks a model, and undoes an update that fails;
- `extensions`: refuses compiled code of another version, and warns where there is none.

`columns_guard.pxi` in `drift/models/_store` is the compiled guard. `drift/models/_store/built.py`
chooses between the two.
"""
