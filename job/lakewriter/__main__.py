"""``python -m lakewriter``: the command line."""

from lakewriter.cli.main import main

if __name__ == "__main__":
    main(prog_name="lakewriter")
