import unittest

from cache import Cache


class Caches(unittest.TestCase):
    def test_without(self):
        c = Cache()
        for n in range(100):
            c.put(n, n)
        self.assertEqual(len(c), 100)

    def test_limit(self):
        c = Cache(2)
        c.put("a", 1)
        c.put("b", None)
        self.assertEqual(c.get("a"), 1)
        c.put("c", 3)
        self.assertEqual((c.get("b", "gone"), c.get("a"), len(c)), ("gone", 1, 2))
        c.put("c", 4)
        self.assertEqual(c.get("x"), None)
        c.put("d", 5)
        self.assertEqual((c.get("a", "gone"), c.get("c"), c.get("d")), ("gone", 4, 5))
