"""`python -m bench_datasets`: the command line."""

from bench_datasets.cli import main

if __name__ == "__main__":
    main()
