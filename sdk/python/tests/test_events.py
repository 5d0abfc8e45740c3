"""The types of payloads."""

from __future__ import annotations

import typing
import unittest

from yaya_plugin import events


class TestEvents(unittest.TestCase):
    def test_types(self) -> None:
        self.assertIn("user.message.received", events.PAYLOADS)
        for kind, payload in events.PAYLOADS.items():
            with self.subTest(kind):
                typing.get_type_hints(payload)  # every name is one
        self.assertEqual(typing.get_type_hints(events.MemoryQuery), {"query": str, "k": int, "folder": str})
        self.assertEqual(events.LLMCallError.__required_keys__, {"error"})
        query: events.MemoryQuery = {"query": "blue", "k": 3}
        self.assertEqual(query["k"], 3)
