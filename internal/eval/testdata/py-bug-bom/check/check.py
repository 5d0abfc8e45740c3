import tempfile
import unittest

from names import names


def saved(data):
    with tempfile.NamedTemporaryFile(delete=False, suffix=".csv") as f:
        f.write(data)
    return f.name


class Names(unittest.TestCase):
    def test_all(self):
        for data in (b"id,name\n1,Ada\n2,Bo\n", b"\xef\xbb\xbfname;id\r\nAda;1\r\nBo;2\r\n", b"name;id\nAda;1\nBo;2\n", b"\xef\xbb\xbfname,note\nAda,a;b\nBo,c\n"):
            self.assertEqual(names(saved(data)), ["Ada", "Bo"], data)
