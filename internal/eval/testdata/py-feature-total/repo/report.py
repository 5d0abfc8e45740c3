"""Print the rows of a CSV file with name and amount, separated by tabs."""
import argparse
import csv


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    args = parser.parse_args(argv)
    with open(args.file, newline="") as f:
        for row in csv.DictReader(f):
            print(row["name"], row["amount"], sep="\t")


if __name__ == "__main__":
    main()
