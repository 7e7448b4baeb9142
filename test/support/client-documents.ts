// A site that has documents of OAuth clients, as the server reaches it: by the guarded way out, which is told that the
// name of the site leads to a public address, and is then connected to this host.

import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueLocally, localCaFile, prepareLocalCa } from '../../src/certificates/local-ca.ts'
import { dial } from '../../src/lib/dial.ts'
import { createPublicFetch, type PublicFetch } from '../../src/lib/public-fetch.ts'

export type DocumentSite = {
  /** Host of all URLs here. */
  host: string
  /** What is at each path. */
  answers: Map<
    string,
    { status?: number; headers?: Record<string, string>; body: string | (() => AsyncIterable<string>) }
  >
  /** Paths in the order they were asked for. */
  asked: string[]
  fetchPublic: PublicFetch
  close: () => Promise<void>
}

export async function startDocumentSite(): Promise<DocumentSite> {
  const dir = await mkdtemp(join(tmpdir(), 'client-documents-'))
  await prepareLocalCa(dir, 'example.test', new Date())
  const pem = await issueLocally(dir, 'example.test')
  const answers: DocumentSite['answers'] = new Map()
  const asked: string[] = []
  const server = createServer({ key: pem, cert: pem }, (request, response) => void answer(request, response))
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    asked.push(path)
    const { status = 200, headers = {}, body } = answers.get(path) ?? { status: 404, body: '' }
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    if (typeof body === 'string') return void response.end(body)
    for await (const part of body()) {
      if (response.destroyed) return
      if (!response.write(part)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
    response.end()
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    host: 'agents.example.test',
    answers,
    asked,
    fetchPublic: createPublicFetch({
      dial: () => dial({ host: '127.0.0.1', port }),
      ca: await readFile(localCaFile(dir), 'utf8'),
    }),
    close: async () => {
      await closed(server)
      await rm(dir, { recursive: true })
    },
  }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
