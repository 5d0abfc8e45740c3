from libs.money import format_price


def revenue(cents):
    return "revenue " + format_price(cents)
