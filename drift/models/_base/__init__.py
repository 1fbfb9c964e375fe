"""What all models stand on; nothing here imports a model or a store.

- `labels`: what can name a class;
- `examples`: what can be learnt, and the error that says why something cannot;
- `rows`: the rows of an array as examples, and what a batch asks of its rows; compiled code reads
  them with `rows.pxi`, and `rows_checks.pxi` is the compiled form of the functions;
- `rounding`: sums that are 0 where their terms cancel;
- `guard`: locks a model, and undoes an update that fails; `guard.pxi` is its compiled form;
- `memory.pxi`, `plain_values.h`: memory, and names and values that are read without the caller's
  code, for compiled code;
- `extensions`: refuses compiled code of another version, and warns where there is none.

The `.pxi` files are compiled with the store; `drift/models/_store/built.py` chooses between the
compiled form and the plain one.
"""
