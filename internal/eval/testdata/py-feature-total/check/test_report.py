import contextlib
import io
import unittest

import report


def lines(*args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        report.main(list(args))
    return out.getvalue().splitlines()


class Report(unittest.TestCase):
    def test_as_before(self):
        self.assertEqual(lines("data.csv"), ["rent\t700.10", "tea\t", "bread\t2.25"])

    def test_total(self):
        self.assertEqual(lines("--total", "data.csv")[-1], "total\t702.35")
        self.assertEqual(len(lines("--total", "data.csv")), 4)
