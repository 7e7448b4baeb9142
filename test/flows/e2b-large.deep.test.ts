// What clients of E2B ask of much of: a gigabyte of a file, a hundred megabytes that nobody reads for a minute, and a hundred
// sandboxes at once, by the official client with a domain, so that the gateway is part of it.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Sandbox } from 'e2b'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'
import { memoryDuring } from '../support/visitors.ts'

const MB = 1024 * 1024
const PIECE = Buffer.alloc(MB, 'a gigabyte of this. ')
const PIECES = 1024
/** Buffers of pipes, sockets and frames; what is kept whole is more. */
const MAX_GROWTH = 120 * MB
const PRINTED = 100_000_000
const STALLED_MS = 60_000
const SANDBOXES = 100
const ROLES = ['server', 'engine', 'gateway'] as const

const tls = await freePort('127.0.0.1')
const berth = useBerth({
  BERTH_ISOLATION: 'gvisor',
  BERTH_GATEWAY_TLS: `127.0.0.1:${tls}`,
  BERTH_RATE_CREATIONS: '1000',
  BERTH_RATE_EXECS: '2000',
  BERTH_RATE_REQUESTS: '5000',
})
const connection = () => ({ apiKey: berth.credentials.apiKey, domain: `berth.localhost:${tls}` })

beforeAll(async () => {
  const authority = await readFile(berth.credentials.caFile ?? '', 'utf8')
  setDefaultCACertificates([...getCACertificates('default'), authority])
  // The first sandbox of an image is refused until the image is built.
  await (await createSandbox(berth)).kill()
})
afterAll(() => setDefaultCACertificates(getCACertificates('bundled')))

/** By how much each process grew at most. */
async function growthIn(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const done = Promise.withResolvers<unknown>()
  const watched = ROLES.map(async (role) => {
    const pid = await berth.pidOf(role)
    const { before, most } = await memoryDuring(pid ?? 0, async () => await done.promise)
    return [role, most - before] as const
  })
  await work().then(done.resolve, done.reject)
  return Object.fromEntries(await Promise.all(watched))
}

function expectLittle(growth: Record<string, number>): void {
  expect(Object.entries(growth).filter(([, bytes]) => bytes > MAX_GROWTH)).toEqual([])
}

it('a file of a gigabyte is written and read in constant memory of every process', async () => {
  const sandbox = await Sandbox.create({ ...connection(), timeoutMs: 3_600_000 })
  const expected = createHash('sha256')
  for (let at = 0; at < PIECES; at += 1) expected.update(PIECE)
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (sent++ < PIECES) controller.enqueue(PIECE)
      else controller.close()
    },
  })
  const options = { requestTimeoutMs: 0, useOctetStream: true }
  expectLittle(await growthIn(async () => await sandbox.files.write('large', body, options)))
  const received = createHash('sha256')
  expectLittle(
    await growthIn(async () => {
      const stream = await sandbox.files.read('large', { format: 'stream', requestTimeoutMs: 0 })
      for await (const piece of stream) received.update(piece)
    }),
  )
  expect(received.digest('hex')).toBe(expected.digest('hex'))
  await sandbox.kill()
}, 1_800_000)

it('what is printed to a reader that stops for a minute waits, and is all there afterwards', async () => {
  const sandbox = await Sandbox.create({ ...connection(), timeoutMs: 3_600_000 })
  let bytes = 0
  let hasStalled = false
  const onStdout = async (text: string) => {
    bytes += text.length
    if (hasStalled) return
    hasStalled = true
    await delay(STALLED_MS)
  }
  const print = `head -c ${PRINTED} /dev/zero | tr "\\0" x`
  const growth = await growthIn(async () => {
    await sandbox.commands.run(print, { onStdout, timeoutMs: 0, requestTimeoutMs: 0 })
  })
  expect(bytes).toBe(PRINTED)
  expectLittle(growth)
  await sandbox.kill()
}, 1_800_000)

it('a hundred sandboxes that are made at once are all there, each with its own output', async () => {
  const told = await Promise.all(
    Array.from({ length: SANDBOXES }, async (_, number) => {
      const sandbox = await Sandbox.create({
        ...connection(),
        requestTimeoutMs: 600_000,
        timeoutMs: 1_200_000,
      })
      const { stdout } = await sandbox.commands.run(`echo ${number}`, {
        requestTimeoutMs: 600_000,
        timeoutMs: 0,
      })
      return { id: sandbox.sandboxId, isOwn: stdout === `${number}\n` }
    }),
  )
  expect(new Set(told.map(({ id }) => id)).size).toBe(SANDBOXES)
  expect(told.filter(({ isOwn }) => !isOwn)).toEqual([])
  const killed = await Promise.all(told.map(async ({ id }) => await Sandbox.kill(id, connection())))
  expect(killed.filter((isKilled) => !isKilled)).toEqual([])
}, 1_800_000)
