"""Linear algebra over the supports; each is a `Part` of a model, by slot, and changes only itself.

`gram` has the inverse and the factor of the Gram matrix, `span` projections onto the supports,
`leave_one_out` the supports' scores without their own share.
"""
