"""Guards calls of tools, and messages: what is denied here runs nowhere."""

import json
import re

from yaya_plugin import GuardedCall, GuardedPrompt, Plugin, Verdict

plugin = Plugin("careful", "1.0.0", "skill")
PUSH = re.compile(r"\bgit\b[^\n;|&]*\bpush\b")
SECRET = re.compile(r"\.env\b|\bid_(rsa|ed25519)\b|\.pem\b")
KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@plugin.guard_tool
async def calls(call: GuardedCall) -> Verdict:
    text = json.dumps(call.args, ensure_ascii=False)
    if PUSH.search(text):
        return Verdict.deny("a person pushes, by hand")
    if found := SECRET.search(text):
        return Verdict.ask(f"the call names {found.group()}")
    return Verdict.allow()


@plugin.guard_prompt
async def messages(prompt: GuardedPrompt) -> Verdict:
    if KEY.search(prompt.text):
        return Verdict.deny("the message has a private key in it")
    return Verdict.allow()


plugin.run()
