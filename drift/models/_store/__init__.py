"""The supports and what keeps them whole: features by column, one thread, updates taken back."""
