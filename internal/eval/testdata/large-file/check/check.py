import unittest

import table


class Table(unittest.TestCase):
    def test_all(self):
        self.assertEqual(len(table.RATES), 10000)
        for code, rate in table.RATES.items():
            self.assertEqual(rate, int(code[1:]) % 97, code)
