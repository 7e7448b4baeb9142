// Idle connections to the API: callers without a credential can open them, and must not crowd out callers that have
// one. All of 127.0.0.0/8 is this host, so one test can be many peers.

import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConnectionLimits, connectionLimits } from '../../src/api/http/connections.ts'
import { createServer } from '../../src/api/server.ts'
import { boundsIn } from '../support/logged.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const WAIT_MS = 30_000

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

async function serve(limits: Partial<ConnectionLimits>) {
  const server = createServer(service.app, { ...connectionLimits, headersMs: 60_000, ...limits })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const opened: Socket[] = []
  return {
    port,
    /** Opens connections that send nothing and never close their side. */
    openSilent: async (localAddress: string, count: number) => {
      for (let made = 0; made < count; made += 1) {
        const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true })
        socket.on('error', () => {})
        opened.push(socket.resume())
        await once(socket, 'connect')
      }
    },
    /** The number of connections that the server has. */
    held: async () =>
      await new Promise<number>((resolve) => server.server.getConnections((_, count) => resolve(count))),
    close: async () => {
      for (const socket of opened) socket.destroy()
      await server.close()
    },
  }
}

/** Runs commands that last until the clock is advanced. Returns a function that counts how many have begun. */
function countWaiting(): () => number {
  let begun = 0
  service.engine.onExec(({ argv }) => {
    if (argv[0] !== 'wait') return null
    begun += 1
    return { stdout: 'done', afterMs: WAIT_MS }
  })
  return () => begun
}

async function ask(port: number, path: string, agent: Agent, body?: unknown): Promise<number> {
  const asked = request({
    host: '127.0.0.1',
    port,
    path,
    agent,
    method: body ? 'POST' : 'GET',
    headers: {
      host: `127.0.0.1:${port}`,
      authorization: `Bearer ${team.key}`,
      'content-type': 'application/json',
    },
  }).end(body ? JSON.stringify(body) : '')
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  return answer.statusCode ?? 0
}

test('silent connections replace each other, and not one that waits for an answer', async () => {
  const served = await serve({ inAll: 30, perPeer: 12 })
  const agent = new Agent({ keepAlive: true })
  const unit = await makeUnit(service, team)
  const begun = countWaiting()
  try {
    const waiting = ask(served.port, `/v1/units/${unit.id}/exec`, agent, { cmd: ['wait'] })
    await expect.poll(begun).toBe(1)
    await served.openSilent('127.0.0.9', 40)
    await expect.poll(served.held).toBe(13)
    for (const peer of [2, 3, 4, 5, 6]) await served.openSilent(`127.0.0.${peer}`, 12)
    await expect.poll(served.held).toBe(30)
    expect(await ask(served.port, '/v1/units', agent)).toBe(200)
    await expect.poll(served.held).toBe(30)
    service.clock.advance(WAIT_MS)
    expect(await waiting).toBe(200)
  } finally {
    agent.destroy()
    await served.close()
  }
})

test('silent connections replace each other before one of the same address that was served', async () => {
  const served = await serve({ inAll: 30, perPeer: 12 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: '127.0.0.9' })
  let closed = 0
  agent.on('free', (socket: Socket) => socket.once('close', () => (closed += 1)))
  try {
    expect(await ask(served.port, '/v1/units', agent)).toBe(200)
    for (let times = 0; times < 3; times += 1) {
      await served.openSilent('127.0.0.9', 40)
      await expect.poll(served.held).toBe(12)
      expect(await ask(served.port, '/v1/units', agent)).toBe(200)
    }
    expect(closed).toBe(0)
  } finally {
    agent.destroy()
    await served.close()
  }
})

test('a connection whose request was refused counts as a silent one', async () => {
  const served = await serve({ inAll: 30, perPeer: 12 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: '127.0.0.9' })
  const closed = new Promise((resolve) => {
    agent.on('free', (socket: Socket) => socket.once('close', resolve))
  })
  try {
    expect(await ask(served.port, '/v1/nothing', agent)).toBe(404)
    await served.openSilent('127.0.0.9', 12)
    await closed
  } finally {
    agent.destroy()
    await served.close()
  }
})

test('a peer whose connections all wait for answers gets no more, and other peers do', async () => {
  const served = await serve({ inAll: 30, perPeer: 3 })
  const [crowd, other] = [new Agent({ localAddress: '127.0.0.9' }), new Agent()]
  const unit = await makeUnit(service, team)
  const begun = countWaiting()
  try {
    const path = `/v1/units/${unit.id}/exec`
    const waiting = [1, 2, 3].map(async () => await ask(served.port, path, crowd, { cmd: ['wait'] }))
    await expect.poll(begun).toBe(3)
    await expect(ask(served.port, '/v1/units', crowd)).rejects.toThrow(/ECONNRESET|hang up/)
    expect(boundsIn(service.logged)).toContainEqual(['connections to the API', '127.0.0.9'])
    expect(await ask(served.port, '/v1/units', other)).toBe(200)
    service.clock.advance(WAIT_MS)
    expect(await Promise.all(waiting)).toEqual([200, 200, 200])
  } finally {
    crowd.destroy()
    other.destroy()
    await served.close()
  }
})

test('a silent connection is closed after its timeout, also when the peer keeps its side open', async () => {
  const served = await serve({ headersMs: 200, lookEveryMs: 100 })
  try {
    await served.openSilent('127.0.0.9', 20)
    expect(await served.held()).toBeGreaterThan(0)
    await expect.poll(served.held, { timeout: 20_000 }).toBe(0)
  } finally {
    await served.close()
  }
})
