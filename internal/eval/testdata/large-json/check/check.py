import unittest


def line(n, port):
    return '{"name": "node-%d", "port": %d, "tags": ["rack-%d"]},\n' % (n, port, n % 40)


class Hosts(unittest.TestCase):
    def test_bytes(self):
        with open("hosts.json", newline="") as f:
            got = f.read()
        want = "[\n" + "".join(line(n, 9443 if n == 4711 else 443) for n in range(10000) if n != 8080)
        self.assertEqual(got == want[:-2] + "\n]\n", True, "the file differs")
