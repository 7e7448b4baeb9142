// Finds the agent that a User-Agent header names (spec 2.9, 2.12). Only known agents count: browsers, curl and HTTP
// libraries do not identify who uses them.

export type KnownAgent = { name: string; title: string; version: string | null }

/** By the product name they send (RFC 9110, 10.1.5), in lower case. An agent can have several. */
const agents: Record<string, { name: string; title: string }> = {
  aider: { name: 'aider', title: 'Aider' },
  amp: { name: 'amp', title: 'Amp' },
  'berth-cli': { name: 'berth-cli', title: 'Berth CLI' },
  'berth-sdk': { name: 'berth-sdk', title: 'Berth SDK' },
  'chatgpt-user': { name: 'chatgpt', title: 'ChatGPT' },
  'claude-cli': { name: 'claude-code', title: 'Claude Code' },
  'claude-code': { name: 'claude-code', title: 'Claude Code' },
  'claude-ai': { name: 'claude', title: 'Claude' },
  'claude-user': { name: 'claude', title: 'Claude' },
  cline: { name: 'cline', title: 'Cline' },
  codex: { name: 'codex', title: 'Codex' },
  'codex-cli': { name: 'codex', title: 'Codex' },
  'codex-mcp-client': { name: 'codex', title: 'Codex' },
  codex_cli_rs: { name: 'codex', title: 'Codex' },
  continue: { name: 'continue', title: 'Continue' },
  cursor: { name: 'cursor', title: 'Cursor' },
  'cursor-vscode': { name: 'cursor', title: 'Cursor' },
  devin: { name: 'devin', title: 'Devin' },
  'gemini-cli': { name: 'gemini-cli', title: 'Gemini CLI' },
  'gemini-cli-mcp-client': { name: 'gemini-cli', title: 'Gemini CLI' },
  geminicli: { name: 'gemini-cli', title: 'Gemini CLI' },
  'github-copilot': { name: 'github-copilot', title: 'GitHub Copilot' },
  githubcopilotchat: { name: 'github-copilot', title: 'GitHub Copilot' },
  goose: { name: 'goose', title: 'Goose' },
  kiro: { name: 'kiro', title: 'Kiro' },
  opencode: { name: 'opencode', title: 'opencode' },
  'qwen-code': { name: 'qwen-code', title: 'Qwen Code' },
  'roo-code': { name: 'roo-code', title: 'Roo Code' },
  'visual-studio-code': { name: 'vscode', title: 'Visual Studio Code' },
  windsurf: { name: 'windsurf', title: 'Windsurf' },
  zed: { name: 'zed', title: 'Zed' },
}

const PRODUCT = /^([\w!#$%&'*+.^`|~-]{1,80})(?:\/([\w!#$%&'*+.^`|~-]{1,80}))?$/

/** Returns the first agent that the header names, or null. Text in parentheses is a comment and is ignored. */
export function agentOf(userAgent: string | null): KnownAgent | null {
  for (const word of withoutComments(userAgent ?? '').split(' ')) {
    const [, product = '', version = null] = PRODUCT.exec(word) ?? []
    const key = product.toLowerCase()
    const agent = Object.hasOwn(agents, key) ? agents[key] : undefined
    if (agent) return { ...agent, version }
  }
  return null
}

/** Returns the agent whose title begins a program's name, as in "Claude Code (berth)"; null for any other name. */
export function agentTitled(name: string | null): KnownAgent | null {
  if (name === null) return null
  const words = ` ${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()} `
  const titled = Object.values(agents).filter(({ title }) => words.startsWith(` ${title.toLowerCase()} `))
  const [longest] = titled.toSorted((one, other) => other.title.length - one.title.length)
  return longest ? { ...longest, version: null } : null
}

/** Comments can be nested and may be unclosed. */
function withoutComments(text: string): string {
  let depth = 0
  let kept = ''
  for (const character of text) {
    if (character === '(') depth += 1
    if (depth === 0) kept += character
    if (character === ')' && depth > 0) depth -= 1
  }
  return kept
}
