// Runs the official conformance suite of the Model Context Protocol.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const suite = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js'))

export type SuiteRun = { code: number | null; said: string }

/** Resolves once the suite has ended. `onSaid`: everything it has printed so far, each time it prints. */
export async function runSuite(args: string[], onSaid: (said: string) => void = () => {}): Promise<SuiteRun> {
  const run = spawn(process.execPath, [suite, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [run.stdout, run.stderr]) {
    stream.on('data', (bytes: Buffer) => onSaid((said += bytes.toString())))
  }
  const [code] = (await once(run, 'close')) as [number | null]
  return { code, said }
}

/** The scenarios that a revision requires of a server, as the suite's own frozen list has them. */
export async function requiredOfServers(revision: string): Promise<string[]> {
  const list = await readFile(join(dirname(suite), '..', 'requirements', `${revision}.yaml`), 'utf8')
  const [, ofServers = ''] = /^server:\n((?: +- \S+\n)+)/m.exec(list) ?? []
  return [...ofServers.matchAll(/- (\S+)/g)].map(([, name = '']) => name)
}

/** The suite sends no credentials: this passes its requests on with a key. */
export async function startKeyProxy(
  baseUrl: string,
  key: string,
): Promise<{ url: string; close: () => void }> {
  const target = new URL(baseUrl)
  const proxy = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${key}` }
    const { method, url } = incoming
    const passed = request(
      { host: target.hostname, port: target.port, method, path: url, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      },
    )
    passed.once('error', () => outgoing.destroy())
    outgoing.once('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const { port } = proxy.address() as AddressInfo
  const close = () => {
    proxy.closeAllConnections()
    proxy.close()
  }
  return { url: `http://127.0.0.1:${port}/mcp`, close }
}
