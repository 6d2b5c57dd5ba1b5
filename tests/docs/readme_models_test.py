"""Runs the examples of README.md that need a real model; those whose file is not there are skipped."""
import sys

import readme

if __name__ == "__main__":
    sys.exit(readme.main(real=True))
