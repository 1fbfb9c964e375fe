"""What all models stand on; nothing here imports a model or a store.

==============  ====================================================================================
``labels``      What can name a class.
``examples``    What can be learnt, and the error that says why something cannot.
``rows``        The rows of an array as examples, and what a batch asks of its rows.
``rounding``    Sums that are 0 where their terms cancel.
``guard``       The lock of a model, and the rollback of an update that fails.
``extensions``  Refusal of compiled code of another version, and a warning where there is none.
==============  ====================================================================================

Compiled code includes the other files. They have no module of their own, but are compiled with the
store, and `drift/models/_store/built.py` chooses between the compiled form and the plain one:

===================  ===============================================================================
``guard.pxi``        The compiled form of ``guard``.
``rows.pxi``         How compiled code reads the rows of ``rows``; the Tracker includes it, too.
``rows_checks.pxi``  The compiled form of the functions in ``rows``.
``memory.pxi``       Memory, buffers and attributes.
``plain_values.h``   Names and values that are read without running the caller's code.
===================  ===============================================================================
"""
