"""The templates that algorithms fill in, from River's contract down to their hooks.

======================  ===========================================================================
``parameters``          Constructor parameters, which cannot be changed later, and clones.
``state``               What is stored of a model.
``contract``            `OnlineClassifier`: the public methods of every model.
``probabilities``       Probabilities from scores.
``wrapper``             How a model that wraps another is printed.
``scored``              `Scored`: models that predict by scores; flags that an algorithm may set.
``kernel_model``        `KernelModel`: scores from one list of supports.
``binary_labels``       `BinaryLabels`: bool, 0/1 or -1/+1.
``binary_model``        `BinaryModel`: what `OneVsRest` asks of the model of one class.
``binary``              `KernelClassifier`: two classes.
``prototypes``          `Prototypes`: a hypothesis for each class.
``multiclass``          `MulticlassKernelClassifier`: any classes.
``two_or_more``         `TwoOrMore`: binary, and multiclass once a third class comes.
``draws``               `Drawing`, for algorithms that draw random integers.
``leave_one_out``       `LeaveOneOut`, for algorithms that evict the most redundant support.
======================  ===========================================================================

An algorithm derives from `KernelClassifier`, `MulticlassKernelClassifier` or `TwoOrMore`, and may
take `Drawing` or `LeaveOneOut` as well.

A file uses only files above it. ``binary`` and ``multiclass`` do not use each other. An update
changes attributes of the model or of its parts, so that the guard can undo it.
"""
