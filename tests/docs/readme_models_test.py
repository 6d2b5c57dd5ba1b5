"""Runs the examples of README.md that need a real model; skipped where it is not there."""
import sys

import readme

if __name__ == "__main__":
    sys.exit(readme.main(real=True))
