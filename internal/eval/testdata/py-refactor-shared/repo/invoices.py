def _amount(cents):
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def invoice(*lines):
    return "\n".join(_amount(c) for c in lines)
