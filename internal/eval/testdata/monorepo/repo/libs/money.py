def format_price(amount):
    """Return an amount of cents as text."""
    return f"{amount / 100:.2f} EUR"
