"""An MCP server with two tools, for one line of JSON after the other."""

import json
import sys

FILE = sys.argv[1]
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "add", "description": "Keeps a note.", "inputSchema": TEXT},
    {"name": "list", "description": "Returns all notes.", "inputSchema": {"type": "object"}},
]


def call(name, arguments):
    if name == "add":
        with open(FILE, "a", encoding="utf-8") as f:
            f.write(arguments["text"].replace("\n", " ") + "\n")
        return "kept"
    try:
        with open(FILE, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def answer(method, params):
    if method == "initialize":
        info = {"name": "notes", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        said = call(params["name"], params.get("arguments", {}))
        return {"content": [{"type": "text", "text": said}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message.get("method"), message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
