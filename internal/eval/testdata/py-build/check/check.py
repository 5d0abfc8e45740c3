import subprocess
import sys
import unittest


class App(unittest.TestCase):
    def test_it_runs(self):
        got = subprocess.run([sys.executable, "-m", "app", "ccc", "a", "bb", "aa"], capture_output=True, text=True)
        self.assertEqual((got.returncode, got.stdout), (0, "a\nbb\naa\nccc\n"), got.stderr)
