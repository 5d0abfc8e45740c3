// Well-known services of models, as data. Those without a plugin speak OpenAI's API. The list is made
// from the presets in kernel/models: go test ./cmd/yaya -run TestPagePresets -update-docs
// @ts-check

/** A service. Local ones need no key and may be found on this machine; one without an address is
 * for any other. @typedef {{name: string, url: string, local?: boolean, plugin?: string}} Preset */

/** @type {readonly Preset[]} */
export const PRESETS = [
  { name: 'OpenAI', url: 'https://api.openai.com/v1' },
  { name: 'OpenAI Responses', url: 'https://api.openai.com/v1', plugin: 'llm-responses' },
  { name: 'Anthropic', url: 'https://api.anthropic.com', plugin: 'llm-anthropic' },
  { name: 'Google', url: 'https://generativelanguage.googleapis.com', plugin: 'llm-gemini' },
  { name: 'Mistral', url: 'https://api.mistral.ai/v1' },
  { name: 'OpenRouter', url: 'https://openrouter.ai/api/v1' },
  { name: 'DeepSeek', url: 'https://api.deepseek.com/v1' },
  { name: 'Groq', url: 'https://api.groq.com/openai/v1' },
  { name: 'xAI', url: 'https://api.x.ai/v1' },
  { name: 'Together', url: 'https://api.together.xyz/v1' },
  { name: 'Fireworks', url: 'https://api.fireworks.ai/inference/v1' },
  { name: 'Ollama', url: 'http://127.0.0.1:11434', local: true, plugin: 'llm-ollama' },
  { name: 'LM Studio', url: 'http://127.0.0.1:1234/v1', local: true },
  { name: 'vLLM', url: 'http://127.0.0.1:8000/v1', local: true },
  { name: 'llama.cpp', url: 'http://127.0.0.1:8080/v1', local: true },
];
