from libs.money import format_price


def invoice(lines):
    return [f"{n} x {format_price(euros)}" for n, euros in lines]
