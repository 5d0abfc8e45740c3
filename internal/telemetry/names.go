package telemetry

// scope is the name of the instrumentation.
const scope = "github.com/yaya-ai/yaya"

// Attributes of the semantic conventions for MCP and generative AI
// (open-telemetry/semantic-conventions-genai, in development).
const (
	attrMethod        = "mcp.method.name"
	attrSession       = "mcp.session.id"
	attrVersion       = "mcp.protocol.version"
	attrResource      = "mcp.resource.uri"
	attrErrorType     = "error.type"
	attrTransport     = "network.transport"
	attrRequest       = "jsonrpc.request.id"
	attrOperation     = "gen_ai.operation.name"
	attrAgent         = "gen_ai.agent.name"
	attrConversation  = "gen_ai.conversation.id"
	attrProvider      = "gen_ai.provider.name"
	attrModel         = "gen_ai.request.model"
	attrTool          = "gen_ai.tool.name"
	attrToolCall      = "gen_ai.tool.call.id"
	attrPrompt        = "gen_ai.prompt.name"
	attrTokenType     = "gen_ai.token.type"          //nolint:gosec // a name
	attrInputTokens   = "gen_ai.usage.input_tokens"  //nolint:gosec // a name
	attrOutputTokens  = "gen_ai.usage.output_tokens" //nolint:gosec // a name
	attrCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	attrCacheCreation = "gen_ai.usage.cache_creation.input_tokens"

	// Of yaya alone.
	attrServer    = "yaya.server"    // the MCP server's name in yaya
	attrPrincipal = "yaya.principal" // on whose behalf
	attrTurn      = "yaya.turn.id"
)

// Types of errors, and transports.
const (
	ToolError = "tool_error" // a result that is an error
	TCP       = "tcp"
	Pipe      = "pipe"
)

// Operations of generative AI.
const (
	opInvokeAgent = "invoke_agent"
	opChat        = "chat"
	opExecuteTool = "execute_tool"
)

// Metrics, with the buckets that the conventions advise.
const (
	meterServer    = "mcp.server.operation.duration"
	meterClient    = "mcp.client.operation.duration"
	meterModel     = "gen_ai.client.operation.duration"
	meterTokens    = "gen_ai.client.token.usage" //nolint:gosec // a name
	meterTool      = "gen_ai.execute_tool.duration"
	meterAgent     = "gen_ai.invoke_agent.duration"
	methodCallTool = "tools/call"
	methodPrompt   = "prompts/get"
)

var (
	bucketsMCP    = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	bucketsModel  = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	bucketsTokens = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
