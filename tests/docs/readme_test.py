"""Runs the examples of README.md that need no real model (readme_models_test.py: the others)."""
import sys

import readme

if __name__ == "__main__":
    sys.exit(readme.main(real=False))
