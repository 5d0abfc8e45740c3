import csv


def names(path):
    """Return the column name of a CSV file."""
    with open(path, newline="", encoding="utf-8") as f:
        return [row["name"] for row in csv.DictReader(f)]
