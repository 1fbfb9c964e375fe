"""Linear algebra over the supports; each is a `Part` of a model, by slot, and changes only itself.

=================  ==================================================================
``gram``           The inverse and the factor of the Gram matrix.
``span``           Projections onto the supports.
``leave_one_out``  The supports' scores without their own share.
=================  ==================================================================
"""
