import unittest

from words import collect


class Words(unittest.TestCase):
    def test_calls_are_apart(self):
        self.assertEqual(collect("a b."), ["a", "b"])
        self.assertEqual(collect("c,"), ["c"])

    def test_a_list_is_kept(self):
        mine = []
        self.assertIs(collect("x", mine), mine)
        self.assertEqual(mine, ["x"])
