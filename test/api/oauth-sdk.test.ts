// The sign-in of the published MCP clients, from the address of /mcp alone: 401, metadata of the resource and of the
// server, a registration or a document, PKCE, a person who agrees, tokens, a tool call, and a refresh an hour later.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import { HOUR, SECOND } from '../../src/lib/clock.ts'
import { type DocumentSite, startDocumentSite } from '../support/client-documents.ts'
import { startAtPublicUrl } from '../support/front.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import { LOOPBACK } from '../support/oauth.ts'
import { agreeAt, type Kept, type Provider, providerOf } from '../support/oauth-provider.ts'
import type { Service } from '../support/service.ts'

const info = { name: 'codex-mcp-client', version: '0.169.0' }

let service: Service
let site: DocumentSite

beforeAll(async () => {
  site = await startDocumentSite()
  service = await startAtPublicUrl({ clientMetadata: true, fetchPublic: site.fetchPublic })
})
afterAll(async () => {
  await service.close()
  await site.close()
})

type Connection = { finish: (answer: URLSearchParams) => Promise<void>; listUnits: () => Promise<unknown> }

const url = () => new URL(`${service.app.config.publicUrl}/mcp`)

/**
 * One attempt to connect. A client that has to sign in first fails, and is completed with what the browser brings
 * back.
 */
const clients: Record<string, (provider: Provider) => Connection> = {
  '@modelcontextprotocol/client': (provider) => {
    const client = new Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    const transport = new StreamableHTTPClientTransport(url(), { authProvider: provider })
    return {
      finish: async (answer) => await transport.finishAuth(answer),
      listUnits: async () => {
        await client.connect(transport)
        return await client.callTool({ name: 'list_units', arguments: {} })
      },
    }
  },
  '@modelcontextprotocol/sdk': (provider) => {
    const client = new OldClient(info)
    const transport = new OldTransport(url(), { authProvider: provider })
    return {
      finish: async (answer) => await transport.finishAuth(answer.get('code') ?? ''),
      listUnits: async () => {
        await client.connect(transport as Parameters<OldClient['connect']>[0])
        return await client.callTool({ name: 'list_units', arguments: {} })
      },
    }
  },
}

const ways = Object.keys(clients).flatMap((client) =>
  (['a registration', 'a document'] as const).map((by) => [client, by] as const),
)

it.each(ways)('%s signs in by %s, calls a tool and refreshes its token', async (name, by) => {
  const team = await makeTeam(service)
  const cookie = await makeSession(service, team)
  const document = `https://${site.host}/agent.json`
  const described = { client_id: document, client_name: 'Claude Code', redirect_uris: [LOOPBACK] }
  site.answers.set('/agent.json', { body: JSON.stringify(described) })
  const kept: Kept = { verifier: '', opened: [] }
  const provider = providerOf(kept, by === 'a document' ? document : undefined)
  const open = clients[name]
  if (!open) throw new Error('no such client')

  const first = open(provider)
  await expect(first.listUnits()).rejects.toThrow(/unauthorized/i)
  const [asked] = kept.opened
  expect(Object.fromEntries(asked?.searchParams ?? [])).toMatchObject({
    response_type: 'code',
    code_challenge_method: 'S256',
    resource: url().href,
    redirect_uri: LOOPBACK,
  })
  expect(kept.client?.client_id).toMatch(by === 'a document' ? /^https:/ : /^client_/)
  await first.finish((await agreeAt(service, asked as URL, cookie)).searchParams)

  const answered = await open(provider).listUnits()
  expect(answered).toMatchObject({ structuredContent: { units: [] } })
  const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
  expect(body.agents).toContainEqual(
    expect.objectContaining({ kind: 'oauth', client: expect.objectContaining({ name: 'Claude Code' }) }),
  )

  const before = kept.tokens
  service.clock.advance(HOUR + SECOND)
  expect(await open(provider).listUnits()).toMatchObject({ structuredContent: { units: [] } })
  expect(kept.tokens).not.toEqual(before)
  // The person was not asked a second time.
  expect(kept.opened).toHaveLength(1)
})
