"""A plugin in this process, against the harness."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib
import threading
import unittest

from yaya_plugin import NO_ANSWER, REFUSED, Call, Check, ConnectionClosed, Event, GuardedCall, GuardedPrompt, Health, Plugin, Result, ToolError, Verdict, YayaError
from yaya_plugin.testing import Harness


@dataclasses.dataclass
class Weather:
    celsius: float


def tool_plugin() -> Plugin:
    return Plugin("subject", "1.0.0", "tool")


class TestGuards(unittest.IsolatedAsyncioTestCase):
    async def test_guards(self) -> None:
        plugin = Plugin("subject", "1.0.0", "skill")

        @plugin.guard_tool
        async def calls(call: GuardedCall) -> object:
            what = call.args.get("do")
            if what == "ask":
                return Verdict.ask(f"{call.name} {call.kind} {call.principal} {call.session_id}")
            if what == "forget":
                return None
            if what == "true":
                return True
            if what == "fail":
                raise OSError("no disk")
            return Verdict.allow()

        async with Harness(plugin) as yaya:
            self.assertEqual(yaya.manifest["guards"], ["pre_tool"])
            self.assertEqual(await yaya.guard_tool("shell", {}), {"decision": "allow"})
            self.assertEqual(await yaya.guard_tool("shell", {"do": "ask"}, new_member="x"), {"decision": "ask", "reason": "shell exec agent:react s1"})
            for what, want in [("forget", "NoneType, not a Verdict"), ("true", "bool, not a Verdict"), ("fail", "no disk")]:
                with self.assertRaisesRegex(YayaError, want):
                    await yaya.guard_tool("shell", {"do": what})
            with self.assertRaisesRegex(YayaError, "does not guard prompt"):
                await yaya.guard_prompt("hi")
        with self.assertRaisesRegex(ValueError, "there are two"):
            plugin.guard_tool(calls)

    async def test_messages(self) -> None:
        plugin = Plugin("subject", "1.0.0", "skill")

        @plugin.guard_prompt
        def messages(prompt: GuardedPrompt) -> Verdict:
            return Verdict.deny("no passwords") if "password" in prompt.text else Verdict.allow()

        async with Harness(plugin) as yaya:
            self.assertEqual(yaya.manifest["guards"], ["prompt"])
            self.assertEqual(await yaya.guard_prompt("the password"), {"decision": "deny", "reason": "no passwords"})
            self.assertEqual(await yaya.guard_prompt("hello"), {"decision": "allow"})

    async def test_none(self) -> None:
        async with Harness(Plugin("subject", "1.0.0", "skill")) as yaya:
            self.assertNotIn("guards", yaya.manifest)
            with self.assertRaisesRegex(YayaError, "unknown method guard"):
                await yaya.guard_prompt("hi")


class TestTools(unittest.IsolatedAsyncioTestCase):
    async def test_results(self) -> None:
        plugin = tool_plugin()

        @plugin.tool(kind="read")
        def text(who: str) -> str:
            "Greets."
            return f"hello {who}"

        @plugin.tool(kind="read", title="Weather")
        async def data() -> Weather:
            "Data."
            return Weather(4.5)

        @plugin.tool(name="own", description="Own.", input_schema={"type": "object"}, timeout=2.5, requires_approval=True)
        async def own(args: dict, call: Call) -> Result:
            return Result(brief=call.session_id, display=[{"kind": "json", "data": args}])

        @plugin.tool()
        def nothing() -> None:
            "Nothing."

        async with Harness(plugin) as yaya:
            tools = {tool["name"]: tool for tool in yaya.manifest["tools"]}
            self.assertEqual(tools["data"]["title"], "Weather")
            self.assertEqual(tools["data"]["output_schema"]["required"], ["celsius"])
            self.assertEqual((tools["own"]["timeout_ms"], tools["own"]["requires_approval"], tools["own"]["kind"]), (2500, True, "exec"))
            self.assertEqual(await yaya.call("text", who="you"), {"ok": True, "display": [{"kind": "text", "text": "hello you"}]})
            self.assertEqual(await yaya.call("data"), {"ok": True, "display": [{"kind": "json", "data": {"celsius": 4.5}}], "structured": {"celsius": 4.5}})
            self.assertEqual(await yaya.call("own", a=1), {"ok": True, "brief": "s1", "display": [{"kind": "json", "data": {"a": 1}}]})
            self.assertEqual(await yaya.call("nothing"), {"ok": True, "display": []})

    async def test_failures(self) -> None:
        plugin = tool_plugin()

        @plugin.tool(kind="read")
        def fails(how: str) -> object:
            "Fails."
            if how == "told":
                raise ToolError("no such place", "not_found", {"place": "x"})
            if how == "result":
                return Result.fail("busy", "unavailable")
            if how == "nan":
                return {"a": float("nan")}
            if how == "big":
                return "x" * (9 << 20)
            raise KeyError("a")

        async with Harness(plugin) as yaya:
            self.assertEqual(await yaya.call("fails", how="told"), {"ok": False, "error_kind": "not_found", "detail": {"place": "x"}, "display": [{"kind": "text", "text": "no such place"}]})
            self.assertEqual((await yaya.call("fails", how="result"))["error_kind"], "unavailable")
            other = await yaya.call("fails", how="other")
            self.assertEqual((other["error_kind"], other["display"][0]["text"]), ("internal", "KeyError: 'a'"))
            for how, want in [("nan", "not JSON compliant"), ("big", "9 MiB is more than the 8 MiB")]:
                with self.assertRaisesRegex(YayaError, want):
                    await yaya.call("fails", how=how)
            with self.assertRaisesRegex(YayaError, "no tool gone"):
                await yaya.call("gone")
            self.assertEqual((await yaya.call("fails", how=1))["error_kind"], "validation")

    async def test_overlap_cancel_and_deadline(self) -> None:
        plugin = tool_plugin()
        began, ended = asyncio.Event(), asyncio.Event()
        checked = threading.Event()

        @plugin.tool(kind="read")
        async def waits() -> str:
            "Waits."
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

        @plugin.tool(kind="read")
        def blocks(call: Call) -> str:
            "Blocks a thread."
            while not call.cancelled:
                checked.wait(0.01)
            checked.set()
            return "late"

        @plugin.tool(kind="read")
        async def quick(call: Call) -> str:
            "Answers."
            call.progress(1, 2, "half")
            return f"{call.remaining > 0} {call.turn_id}"

        async with Harness(plugin) as yaya:
            waiting = asyncio.create_task(yaya.call("waits"))
            await began.wait()
            self.assertEqual((await yaya.call("quick"))["display"][0]["text"], "True t1")
            self.assertEqual([(p["progress"], p["total"], p["message"]) for p in yaya.progress], [(1, 2, "half")])
            waiting.cancel()
            await asyncio.wait_for(ended.wait(), 5)
            late = await yaya.call("blocks", timeout=0.05)
            self.assertEqual(late["error_kind"], "timeout")
            self.assertTrue(await asyncio.to_thread(checked.wait, 5), "the thread did not learn that nobody waits")

    def test_registration_is_checked(self) -> None:
        plugin = tool_plugin()
        with self.assertRaisesRegex(ValueError, "docstring"):
            plugin.tool()(lambda: None)
        plugin.tool(name="a", description="A.")(lambda: None)
        with self.assertRaisesRegex(ValueError, "two of this name"):
            plugin.tool(name="a", description="A.")(lambda: None)
        with self.assertRaisesRegex(ValueError, "kind 'run'"):
            plugin.tool(kind="run")
        with self.assertRaisesRegex(ValueError, "category skill has no tools"):
            Plugin("subject", "1.0.0", "skill").tool()
        with self.assertRaisesRegex(ValueError, "category 'thing'"):
            Plugin("subject", "1.0.0", "thing")


class TestEvents(unittest.IsolatedAsyncioTestCase):
    async def test_memory(self) -> None:
        plugin = Plugin("subject", "1.0.0", "memory")

        @plugin.on("memory.query")
        async def query(event: Event) -> None:
            await event.reply("memory.result", {"hits": [{"text": event.payload["query"]}]})

        @plugin.on("memory.write")
        def write(event: Event) -> None:
            plugin.send("x.subject.wrote", event.session_id, event.payload)

        async with Harness(plugin) as yaya:
            key = await yaya.event("memory.query", {"query": "blue", "k": 1}, session_id="s2")
            self.assertEqual(yaya.emitted[0]["session_id"], "s2")
            self.assertEqual(await yaya.next("memory.result"), {"hits": [{"text": "blue"}], "request_id": key})
            await yaya.event("memory.write", {"entry": {"text": "a"}})
            self.assertEqual(await yaya.next("x.subject.wrote"), {"entry": {"text": "a"}})
            await yaya.event("turn.started", {})  # nothing handles it

    async def test_failures_and_refusals(self) -> None:
        plugin = Plugin("subject", "1.0.0", "skill")
        got: list[YayaError] = []

        @plugin.on("user.message.received")
        async def heard(event: Event) -> None:
            if event.payload["text"] == "hang":
                await asyncio.Event().wait()
            if event.payload["text"] == "ask":
                answer = await plugin.request("memory.query", event.session_id, {"query": "x"}, timeout=5)
                await plugin.emit("x.subject.heard", event.session_id, answer.payload)
                return
            try:
                await plugin.emit("plugin.error", event.session_id, {})
            except YayaError as err:
                got.append(err)
            raise RuntimeError("as it was told")

        async with Harness(plugin) as yaya:
            yaya.refused.add("plugin.error")
            with self.assertRaisesRegex(YayaError, "RuntimeError: as it was told"):
                await yaya.event("user.message.received", {"text": "fail"})
            self.assertEqual([err.code for err in got], [REFUSED])
            with self.assertRaises(YayaError) as caught:
                await yaya.event("user.message.received", {"text": "hang"}, timeout=0.05)
            self.assertIn("TimeoutError", str(caught.exception))
            with self.assertRaisesRegex(YayaError, "no answer to memory.query"):
                await yaya.event("user.message.received", {"text": "ask"})
            yaya.answers["memory.query"] = lambda payload: ("memory.result", {"hits": [payload["query"]]})
            await yaya.event("user.message.received", {"text": "ask"})
            self.assertEqual(await yaya.next("x.subject.heard"), {"hits": ["x"]})
        self.assertEqual(NO_ANSWER, -32003)
        with self.assertRaises(ConnectionClosed):
            await plugin.emit("x.subject.heard", "s1", {})
        plugin.log("nobody reads this")

    async def test_work_beside_and_settings(self) -> None:
        plugin = Plugin("subject", "1.0.0", "llm-provider")
        ended = asyncio.Event()

        @plugin.on("llm.call.request")
        async def asked(event: Event) -> None:
            plugin.spawn(answer(event))

        async def answer(event: Event) -> None:
            try:
                if event.payload["model"] == "endless":
                    await asyncio.Event().wait()
                if event.payload["model"] == "broken":
                    raise RuntimeError("it is broken")
                await event.reply("llm.call.response", {"text": plugin.providers[0].config["greeting"], "usage": {}})
            finally:
                ended.set()

        @plugin.on("config.updated")
        async def changed(_: Event) -> None:
            await plugin.refresh()

        async with Harness(plugin, config={"a": 1}, providers=[{"id": "one", "label": "One", "config": {"greeting": "hi"}}]) as yaya:
            self.assertEqual(plugin.config, {"a": 1})
            await yaya.event("llm.call.request", {"model": ""})
            self.assertEqual((await yaya.next("llm.call.response"))["text"], "hi")
            await yaya.event("llm.call.request", {"model": "broken"})
            yaya.config, yaya.providers = {"a": 2}, []
            await yaya.event("config.updated", {})
            self.assertEqual((plugin.config, plugin.providers), ({"a": 2}, []))
            self.assertIn("RuntimeError: it is broken", yaya.logs)
            ended.clear()
            await yaya.event("llm.call.request", {"model": "endless"})
        self.assertTrue(ended.is_set(), "work beside goes on after the end")


class TestLife(unittest.IsolatedAsyncioTestCase):
    async def test_start_health_shutdown(self) -> None:
        plugin = Plugin("subject", "1.0.0", "memory")
        plugin.on_start(lambda: pathlib.Path(plugin.state_dir, "a").write_text("kept"))
        saved: list[str] = []
        plugin.on_shutdown(lambda: saved.append(pathlib.Path(plugin.state_dir, "a").read_text()))
        async with Harness(plugin) as yaya:
            self.assertEqual(yaya.manifest, {"abi": 1, "name": "subject", "version": "1.0.0", "category": "memory"})
            with self.assertRaises(YayaError) as caught:
                await yaya.ask("health", {})
            self.assertEqual(caught.exception.code, -32601)
            plugin.health(lambda: "42 stations")
            self.assertEqual(await yaya.ask("health", {}), {"status": "ok", "summary": "42 stations", "details": []})
            plugin.health(lambda: Health("degraded", "slow", [Check("disk", "failed", "full")]))
            self.assertEqual((await yaya.ask("health", {}))["details"], [{"name": "disk", "status": "failed", "message": "full"}])
        self.assertEqual(saved, ["kept"])

    async def test_a_start_that_fails(self) -> None:
        plugin = Plugin("subject", "1.0.0", "memory")

        @plugin.on_start
        async def start() -> None:
            raise RuntimeError("no key")

        with self.assertRaisesRegex(YayaError, "RuntimeError: no key"):
            async with Harness(plugin):
                self.fail("it started")

    async def test_protocol_errors(self) -> None:
        from yaya_plugin.connection import Connection
        import json

        plugin = Plugin("subject", "1.0.0", "memory")
        out: list[dict] = []
        answered = asyncio.Event()

        def write(line: bytes) -> None:
            out.append(json.loads(line))
            answered.set()

        connection = Connection(plugin, write)
        for line, want in [
            (b"{", (None, -32700)),
            (b"[]", (None, -32600)),
            (b'{"jsonrpc":"2.0","id":1,"method":"health"}', (1, -32600)),
            (b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"abi":0}}', (2, -32602)),
            (b'{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"abi":1,"later":true}}', (3, None)),
            (b'{"jsonrpc":"2.0","id":4,"method":"later","params":{}}', (4, -32601)),
        ]:
            with self.subTest(line=line):
                answered.clear()
                connection.receive(line)
                await asyncio.wait_for(answered.wait(), 5)
                self.assertEqual((out[-1]["id"], out[-1].get("error", {}).get("code")), want)
        for line in [b'{"jsonrpc":"2.0","method":"later"}', b'{"jsonrpc":"2.0","id":"p9","result":{}}', b'{"jsonrpc":"2.0","method":"cancel","params":{"id":99}}']:
            connection.receive(line)
        count = len(out)
        self.assertTrue(await connection.close())
        self.assertEqual(len(out), count)


if __name__ == "__main__":
    unittest.main()
