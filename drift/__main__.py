"""``python -m drift``: the command line, where the script is not on the path."""

from drift.cli import main

if __name__ == "__main__":
    main()
