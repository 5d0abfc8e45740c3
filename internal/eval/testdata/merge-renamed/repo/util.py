def total(values):
    out = 0
    for v in values:
        out = out + v
    return out
