class Cache:
    """Keep values by key."""

    def __init__(self):
        self._kept = {}

    def get(self, key, default=None):
        return self._kept.get(key, default)

    def put(self, key, value):
        self._kept[key] = value

    def __len__(self):
        return len(self._kept)
