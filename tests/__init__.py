"""Tests of drift; a package, as one that is installed may have the same name."""
