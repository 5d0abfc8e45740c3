import os
import subprocess
import unittest

from tools.util import VERSION, total


class Merged(unittest.TestCase):
    def test_it(self):
        self.assertEqual((total([1, 2, 3]), VERSION), (6, 2))
        with open("tools/util.py") as f:
            self.assertIn("sum(", f.read())
        self.assertFalse(os.path.exists("util.py"))

    def test_committed(self):
        def git(*args):
            return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout

        self.assertEqual(len(git("rev-list", "--parents", "-1", "HEAD").split()), 3)
        self.assertNotIn("util.py", git("status", "--porcelain"))
