"""`python -m ral`: the same as the installed command, but without the launcher's promise about signals at start-up."""

from ral.cli import main

if __name__ == "__main__":
    main()
