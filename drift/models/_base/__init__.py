"""What all models stand on; nothing here knows a model or a store.

`labels` says what can name a class, `examples` what can be learnt, and both say why not. `rows` are
those of an array, `rounding` has sums whose terms cancel. `guard` locks a model, and undoes an
update that fails.
"""
