TIMEOUT = 10


def fetch(get, url):
    """Return what get says about a URL."""
    return get(url, TIMEOUT)
