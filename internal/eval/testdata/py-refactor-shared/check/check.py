import unittest

import invoices
import money
import orders


class Shared(unittest.TestCase):
    def test_all(self):
        self.assertEqual(money.amount(-5), "-0.05")
        self.assertEqual(orders.order("tea", 250), "tea: 2.50")
        self.assertEqual(invoices.invoice(1, -199), "0.01\n-1.99")
        for module in (orders, invoices):
            self.assertIs(module.amount, money.amount)
            self.assertFalse(hasattr(module, "_amount"))
