// How programs are connected: each opens a page of Berth that asks what it may do.

import { Code } from '../ui/copy.tsx'
import { Card } from '../ui/page-parts.tsx'
import styles from './agents.module.css'

const ways = [
  {
    client: 'Claude Code',
    paste: (url: string) => `claude mcp add --transport http berth ${url}`,
    note: 'Then say /mcp in Claude Code and sign in.',
  },
  {
    client: 'Codex',
    paste: (url: string) => `codex mcp add berth --url ${url} && codex mcp login berth`,
    note: 'It opens the page that asks.',
  },
  {
    client: 'Cursor',
    paste: (url: string) => JSON.stringify({ mcpServers: { berth: { url } } }, null, 2),
    note: 'In ~/.cursor/mcp.json; Cursor then offers to sign in.',
  },
  {
    client: 'VS Code',
    paste: (url: string) => `code --add-mcp '${JSON.stringify({ name: 'berth', type: 'http', url })}'`,
    note: 'VS Code signs in when the server is started.',
  },
  {
    client: 'curl, with a key',
    paste: (url: string) =>
      `curl ${url.replace(/\/mcp$/, '/v1/units')} -H "authorization: Bearer $BERTH_API_KEY"`,
    note: 'Create the key here with “New key”.',
  },
] as const

export function Connect() {
  const url = `${location.origin}/mcp`
  return (
    <Card title="Connect a program">
      <p className={styles.lead}>
        Any MCP client takes the address <code>{url}</code>. Berth then asks you what the program may do.
      </p>
      <div className={styles.ways}>
        {ways.map(({ client, paste, note }) => (
          <details key={client} className={styles.way}>
            <summary>{client}</summary>
            <Code text={paste(url)} label={`what to give ${client}`} />
            <p className={styles.lead}>{note}</p>
          </details>
        ))}
      </div>
    </Card>
  )
}
