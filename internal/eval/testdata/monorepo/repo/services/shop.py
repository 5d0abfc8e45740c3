from libs.money import format_price


def label(name, euros):
    return f"{name}: {format_price(euros)}"
