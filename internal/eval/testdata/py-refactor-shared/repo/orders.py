def _amount(cents):
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def order(name, cents):
    return f"{name}: {_amount(cents)}"
