"""`python -m emulator` is the console script `workers-emulator`."""

from emulator.cli.app import main

if __name__ == "__main__":
    main()
