def collect(text, into=[]):
    """Append the words of a text to a list, and return it. Without one, it is a new list."""
    for word in text.split():
        into.append(word.strip(".,"))
    return into
