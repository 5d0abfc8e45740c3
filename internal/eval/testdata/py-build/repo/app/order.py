def by_length(words):
    return sorted(words, key=len)
