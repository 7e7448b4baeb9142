// A caller of one Berth for benchmarks that compare two: creates, execs, sleeps and visits.

import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { timed } from './in-turn.ts'

type Unit = { id: string; state: string }
type Made = { units: [Unit & { host?: { id: string } }]; outputs: Record<string, string> }

export type Caller = ReturnType<typeof callerOf>

const IMAGE = 'berth.local/debian:12'
const SERVER = {
  name: 'web',
  image: 'berth.local/python:3.11',
  size: 'nano',
  cmd: ['python3', '-m', 'http.server', '8000', '--directory', '/srv'],
  files: { '/srv/index.html': 'page' },
  ports: [8000],
  expose: 8000,
}
/** One request for each connection, and no image but the one of the other units. */
export const SMALL_SERVER = {
  ...SERVER,
  image: IMAGE,
  cmd: [
    'perl',
    '-MIO::Socket::INET',
    '-e',
    String.raw`$s = IO::Socket::INET->new(LocalPort => 8000, Listen => 128, ReuseAddr => 1); while ($c = $s->accept) { while (<$c>) { last if /^\r?\n$/ } print $c "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage"; close $c }`,
  ],
}

export function callerOf({ baseUrl, key }: { baseUrl: string; key: string }) {
  const agent = new Agent({ keepAlive: true })
  let count = 0
  const there = new Set<string>()

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const sent = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${key}`,
      ...(sent === ''
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }),
    }
    const asked = request(`${baseUrl}${path}`, { method, headers, agent })
    const answer = await new Promise<string>((resolve, reject) => {
      asked.once('error', reject)
      asked.once('response', (response) => {
        void text(response).then((said) =>
          (response.statusCode ?? 500) < 300
            ? resolve(said)
            : reject(new Error(`${method} ${path}: ${said}`)),
        )
      })
      asked.end(sent)
    })
    return JSON.parse(answer) as T
  }

  const make = async (body: unknown): Promise<Made> => {
    const made = await call<Made>('POST', '/v1/units', body)
    there.add(made.units[0].id)
    return made
  }
  const create = async (): Promise<Made> => {
    const spec = { name: `unit-${(count += 1)}`, image: IMAGE, size: 'nano', cmd: ['sleep', 'infinity'] }
    return await make({ spec, waitTimeoutMs: 60_000 })
  }
  const exec = async (id: string) => await call('POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
  const destroy = async (id: string) => {
    await call('DELETE', `/v1/units/${id}`)
    there.delete(id)
  }
  return {
    create,
    destroy,
    /** Of a create, until the unit runs; it is destroyed then, and what is made ahead is made again. */
    timeCreate: async (): Promise<number> => {
      const beganMs = performance.now()
      const made = await create()
      const tookMs = performance.now() - beganMs
      await destroy(made.units[0].id)
      await delay(AGAIN_MS)
      return tookMs
    },
    timeExec: async (id: string): Promise<number> => await timed(async () => await exec(id)),
    /** Of a command that wakes its unit. */
    timeWake: async (id: string): Promise<number> => {
      await call('POST', `/v1/units/${id}/sleep`, { sleep: '30m', now: true })
      while ((await call<Unit>('GET', `/v1/units/${id}`)).state !== 'sleeping') await delay(20)
      return await timed(async () => await exec(id))
    },
    /** Of a copy, which is destroyed then. */
    timeFork: async (id: string): Promise<number> => {
      const beganMs = performance.now()
      const { units } = await call<Pick<Made, 'units'>>('POST', `/v1/units/${id}/fork`, {})
      const tookMs = performance.now() - beganMs
      for (const copy of units) await destroy(copy.id)
      await delay(AGAIN_MS)
      return tookMs
    },
    createServer: async (spec: object = SERVER): Promise<URL> => {
      const made = await make({ spec, expose: 'public', waitTimeoutMs: 60_000 })
      return new URL(made.outputs['URL'] ?? '')
    },
    /** Destroys its units. */
    close: async () => {
      for (const id of there) await destroy(id).catch((error: unknown) => console.log(String(error)))
      agent.destroy()
    },
  }
}

/** A machine that was used is made again meanwhile. */
const AGAIN_MS = 700
