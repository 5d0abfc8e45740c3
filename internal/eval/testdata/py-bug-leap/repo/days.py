LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def days(year, month):
    """Return how many days a month of the Gregorian calendar has."""
    if month == 2 and year % 4 == 0:
        return 29
    return LENGTHS[month - 1]
