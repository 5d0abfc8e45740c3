"""What the conformance suites want of a server, on the Python SDK: over stdio, or over
HTTP at the port given. The names, texts and questions are the suites' own."""

import asyncio
import base64
import json
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.tools.base import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from suitedata import CHOICES, DEFAULTS, IMAGE, SCHEMA_2020, SOUND, asking

server = MCPServer("suite", log_level="ERROR")
Answer = CallToolResult | InputRequiredResult


def text(s: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=s)])


def embedded(uri: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type="text/plain", text="Embedded resource content for testing.")
    return EmbeddedResource(type="resource", resource=contents)


PICTURE = ImageContent(type="image", data=IMAGE, mime_type="image/png")


@server.tool()
def test_simple_text() -> str:
    """Says a text"""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> list[ImageContent]:
    """Shows a picture"""
    return [PICTURE]


@server.tool(structured_output=False)
def test_audio_content() -> list[AudioContent]:
    """Plays a sound"""
    return [AudioContent(type="audio", data=SOUND, mime_type="audio/wav")]


@server.tool(structured_output=False)
def test_embedded_resource() -> list[EmbeddedResource]:
    """Embeds a resource"""
    return [embedded("test://embedded-resource")]


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answers with three kinds of content"""
    return [TextContent(type="text", text="Three kinds:"), PICTURE, embedded("test://mixed-content-resource")]


@server.tool()
def test_error_handling() -> str:
    """Fails"""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times"""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(line)
        await asyncio.sleep(0.05)
    return "logged"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Logs for those who asked"""
    await ctx.info("for those who asked")
    return "logged"


async def steps(ctx: Context) -> str:
    """Reports three steps"""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


server.add_tool(steps, name="test_tool_with_progress")
server.add_tool(steps, name="test_streaming_elicitation")


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Closes its stream"""
    await ctx.close_sse_stream()
    await asyncio.sleep(0.05)
    return "reconnected"


@server.tool()
def test_missing_capability(ctx: Context) -> str:
    """Wants a client that samples"""
    if ctx.client_capabilities and ctx.client_capabilities.sampling:
        return "sampling is declared"
    raise MCPError(-32021, "the client does not declare sampling", {"requiredCapabilities": {"sampling": {}}})


def with_schema(name: str, schema: dict[str, Any]) -> None:
    def show(**given: Any) -> str:
        return json.dumps(given)

    tool = Tool.from_function(show, name=name, description=f"Shows {name}", structured_output=False)
    server._tool_manager._tools[name] = tool.model_copy(update={"parameters": schema})  # the SDK takes no schema


with_schema("json_schema_2020_12_tool", SCHEMA_2020)
with_schema(
    "test_x_mcp_header",
    {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}},
    },
)

changes = 0  # of the lists


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Adds a tool"""
    global changes
    changes += 1
    server.add_tool(test_simple_text, name=f"added_{changes}")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Adds a prompt"""
    global changes
    changes += 1
    server.prompt(name=f"added_{changes}", description="Added")(test_simple_prompt)
    await ctx.notify_prompts_changed()
    return "changed"


# The legacy way to ask: a request of the server's while it works.


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model"""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    result = await ctx.session.create_message(
        messages=[message], max_tokens=100, related_request_id=ctx.request_context.request_id
    )
    return f"LLM response: {result.content.text}"


async def elicit(ctx: Context, message: str, schema: dict[str, Any]) -> str:
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_context.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user"""
    return "User response: " + await elicit(ctx, message, asking("response"))


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user, with defaults"""
    return "Elicitation completed: " + await elicit(ctx, "With defaults", DEFAULTS)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user to choose"""
    return "Elicitation completed: " + await elicit(ctx, "With choices", CHOICES)


# The modern way to ask: a result that says what else is needed.


def form(message: str, field: str, kind: str = "string") -> ElicitRequest:
    params = ElicitRequestFormParams(message=message, requested_schema=asking(field, kind))
    return ElicitRequest(method="elicitation/create", params=params)


def sample(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    params = CreateMessageRequestParams(messages=[message], max_tokens=100)
    return CreateMessageRequest(method="sampling/createMessage", params=params)


NAME = form("What is your name?", "name")
CONFIRM = form("Please confirm", "ok", "boolean")
ROOTS = ListRootsRequest(method="roots/list")


def need(requests: dict[str, Any], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


def accepted(ctx: Context, key: str) -> dict[str, Any]:
    answer = (ctx.input_responses or {}).get(key)
    return (answer.content or {}) if getattr(answer, "action", "") == "accept" else {}


def given(ctx: Context, key: str) -> Any:
    return (ctx.input_responses or {}).get(key)


@server.tool()
def test_input_required_result_elicitation(ctx: Context) -> Answer:
    """Asks for a name"""
    name = accepted(ctx, "user_name").get("name")
    return text(f"Hello, {name}!") if name else need({"user_name": NAME})


@server.tool()
def test_input_required_result_sampling(ctx: Context) -> Answer:
    """Asks the client's model"""
    answer = given(ctx, "capital_question")
    if not hasattr(answer, "model"):
        return need({"capital_question": sample("What is the capital of France?")})
    return text(f"Sampling response: {answer.content}")


@server.tool()
def test_input_required_result_list_roots(ctx: Context) -> Answer:
    """Asks for roots"""
    answer = given(ctx, "client_roots")
    return text(f"{len(answer.roots)} roots") if hasattr(answer, "roots") else need({"client_roots": ROOTS})


@server.tool()
def test_input_required_result_request_state(ctx: Context) -> Answer:
    """Keeps state in the client"""
    return text("state-ok") if accepted(ctx, "confirm") and ctx.request_state == "one" else need({"confirm": CONFIRM}, "one")


@server.tool()
def test_input_required_result_tampered_state(ctx: Context) -> Answer:
    """Keeps state in the client, which the SDK seals"""
    return text("state-ok") if accepted(ctx, "confirm") else need({"confirm": CONFIRM}, "whole")


@server.tool()
def test_input_required_result_multiple_inputs(ctx: Context) -> Answer:
    """Asks three things at once"""
    name, greeting, roots = accepted(ctx, "user_name").get("name"), given(ctx, "greeting"), given(ctx, "client_roots")
    if name and greeting and roots:
        return text(f"Hello {name}")
    return need({"user_name": NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}, "several")


@server.tool()
def test_input_required_result_multi_round(ctx: Context) -> Answer:
    """Asks twice"""
    if ctx.request_state is None:
        return need({"step1": NAME}, "round 1")
    if ctx.request_state == "round 1":
        name = accepted(ctx, "step1").get("name", "Nobody")
        return need({"step2": form("What is your favorite color?", "color")}, name)
    return text(f"{ctx.request_state} likes {accepted(ctx, 'step2').get('color')}")


@server.tool()
def test_input_required_result_capabilities(ctx: Context) -> Answer:
    """Asks what the client can answer"""
    if ctx.input_responses:
        return text("fulfilled")
    can, ask = ctx.client_capabilities, {}
    if can and can.elicitation:
        ask["user_name"] = NAME
    if can and can.sampling:
        ask["greeting"] = sample("Generate a greeting")
    if can and can.roots:
        ask["client_roots"] = ROOTS
    return need(ask) if ask else text("the client answers no question")


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text"""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture"""
    return base64.b64decode(IMAGE)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that can be subscribed to"""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """A template"""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """A prompt"""
    return [UserMessage("This is a simple prompt for testing.")]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A prompt with arguments"""
    return [UserMessage(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 the suites' name
    """A prompt with a resource"""
    return [UserMessage(embedded(resourceUri))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture"""
    return [UserMessage(PICTURE)]


@server.prompt()
def test_input_required_result_prompt(ctx: Context) -> list[UserMessage] | InputRequiredResult:
    """A prompt that asks"""
    context = accepted(ctx, "user_context").get("context")
    return [UserMessage(f"Context: {context}")] if context else need({"user_context": form("Which context?", "context")})


@server.completion()
async def complete(_ref: Any, _argument: Any, _context: Any) -> Completion:
    return Completion(values=[], total=0, has_more=False)


async def nothing(_ctx: Any, _params: Any) -> EmptyResult:
    return EmptyResult()


for method, params in (
    ("logging/setLevel", SetLevelRequestParams),
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, params, nothing)

if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
