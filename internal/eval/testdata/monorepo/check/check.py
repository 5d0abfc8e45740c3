import unittest

from libs.money import format_price
from services import billing, reports, shop


class Prices(unittest.TestCase):
    def test_all(self):
        self.assertEqual(format_price(1250), "12.50 EUR")
        self.assertEqual(format_price(12.5, unit="euros"), "12.50 EUR")
        self.assertEqual(format_price(1250, unit="cents"), "12.50 EUR")
        self.assertEqual(shop.label("tea", 3), "tea: 3.00 EUR")
        self.assertEqual(billing.invoice([(2, 1.5)]), ["2 x 1.50 EUR"])
        self.assertEqual(reports.revenue(99), "revenue 0.99 EUR")
