"""What all models stand on; nothing here imports a model or a store.

`labels` says what can name a class, `examples` what can be learnt, and both say why not. `rows` has
the rows of an array, `rounding` has sums whose terms cancel. `guard` locks a model, and undoes an
update that fails; the stores are marked for it by `store_class`.
"""
