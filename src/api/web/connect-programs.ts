// Shows how to connect a program, and the connected programs, on the account page. It works without scripts, so a
// text to copy is selected by one click.

import type { Agent } from '../../contract/agent.ts'
import { euros } from '../../lib/money.ts'
import { escapeHtml } from './html.ts'

type Way = { client: string; note: string; paste: (url: string) => string }

/** What the published clients are told to add an MCP server that is signed in to; docs/mcp.md has more of them. */
const ways: readonly Way[] = [
  {
    client: 'Claude Code',
    paste: (url) => `claude mcp add --transport http berth ${url}`,
    note: 'Then say <code>/mcp</code> in Claude Code and sign in.',
  },
  {
    client: 'Codex',
    paste: (url) => `codex mcp add berth --url ${url} && codex mcp login berth`,
    note: '',
  },
  {
    client: 'Cursor',
    paste: (url) => JSON.stringify({ mcpServers: { berth: { url } } }, null, 2),
    note: 'In <code>~/.cursor/mcp.json</code>; Cursor then offers to sign in.',
  },
  {
    client: 'VS Code',
    paste: (url) => `code --add-mcp '${JSON.stringify({ name: 'berth', type: 'http', url })}'`,
    note: 'VS Code signs in when the server is started.',
  },
]

export function connectMarkup(publicUrl: string): string {
  const url = `${publicUrl}/mcp`
  const rows = ways.map(
    ({ client, paste, note }) => `
<h3>${client}</h3>
<pre tabindex="0">${escapeHtml(paste(url))}</pre>${note === '' ? '' : `\n<p class="note">${note}</p>`}`,
  )
  return `
<h2>Connect a program</h2>
<p>Give any MCP client this address. It opens a page here that asks you what the program may do.</p>
<pre tabindex="0">${escapeHtml(url)}</pre>
${rows.join('\n')}`
}

/** Programs that this person has connected to the team they act in. */
export function connectedMarkup(agents: readonly Agent[]): string {
  if (agents.length === 0) return ''
  const rows = agents.map(
    ({ id, name, client, policy, lastUsedAt }) => `
<li><p><b><bdi>${escapeHtml(name)}</bdi></b>${client?.name && client.name !== name ? ` (<bdi>${escapeHtml(client.name)}</bdi>)` : ''}<br>
<small>at most ${policy.maxConcurrentUnits} ${policy.maxConcurrentUnits === 1 ? 'unit' : 'units'} at once, ${euros(policy.dailySpendCapCents)} a day · ${lastUsedAt === null ? 'not used yet' : `last used ${escapeHtml(lastUsedAt.slice(0, 16).replace('T', ' '))} UTC`}</small></p>
<form method="post" action="/account/agents/${encodeURIComponent(id)}/revoke"><button class="danger" aria-label="Revoke ${escapeHtml(name)}">Revoke</button></form></li>`,
  )
  return `
<h2>Programs you have connected</h2>
<ul class="rows">${rows.join('')}</ul>`
}
