// An engine of another machine that is stopped and started again, as by a new version of its host.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createFakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { systemClock } from '../../lib/clock.ts'
import { parseIdentity } from '../../lib/fleet-identity.ts'
import { freePort } from '../../lib/free-port.ts'
import { silentLog } from '../../lib/log.ts'
import type { Engine } from '../engine.ts'
import { openEpochs } from '../epochs.ts'
import { connectFarEngine } from './client.ts'
import { type ServedEngine, serveEngine } from './server.ts'

const engine = createFakeEngine({ clock: systemClock })
const ref = { id: `unit_${'0'.repeat(32)}`, generation: 1 }
let directory: string
let port: number
let served: ServedEngine
let far: Engine
/** As every server does. */
const watching = new AbortController()

const identityOf = async (role: 'engine' | 'server', host: string) =>
  parseIdentity(await issueIdentity(directory, { role, host }, new Date()))

async function serve(): Promise<void> {
  served = await serveEngine({
    engine,
    epochs: await openEpochs(join(directory, 'epoch')),
    socketPath: join(directory, 'engine.sock'),
    socketGid: 0,
    tls: { host: '127.0.0.1', port, identity: await identityOf('engine', 'east') },
    log: silentLog,
  })
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-restart-'))
  port = await freePort('127.0.0.1')
  await serve()
  const identity = await identityOf('server', 'main')
  const address = { host: '127.0.0.1', port, name: 'east', identity }
  far = connectFarEngine({ address, epoch: 1, onLost: () => {} }).engine
  const { digest: imageDigest } = await far.pull('berth.local/debian:12')
  const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
  await far.create({ id: ref.id, imageDigest, isolation: 'gvisor', size, volume: null, networkGroup: 1 })
  const run = { entrypoint: null, cmd: ['sleep', 'infinity'], env: {}, files: [], egress: null }
  void far.watchExits(() => {}, watching.signal)
  await far.start(ref, { hostname: 'unit', searchDomain: 'berth', ...run })
})
afterAll(async () => {
  watching.abort()
  await served.close()
  await rm(directory, { recursive: true })
})

const exec = async (argv: string[]) => {
  let said = ''
  const onOutput = async ({ data }: { data: Buffer }) => void (said += data.toString())
  await far.exec(ref, { argv, stdin: null, timeoutMs: 10_000 }, onOutput)
  return said
}

it('calls that come while it restarts are answered by the next one, and begin once', async () => {
  const before = engine.calls.filter(({ operation }) => operation === 'exec').length
  await served.close()
  const asked = [exec(['echo', 'one']), exec(['echo', 'two']), far.list(), far.thaw(ref)] as const
  await systemClock.sleep(1000)
  await serve()
  const [one, two, listed] = await Promise.all(asked)
  expect([one, two, listed.length]).toEqual(['one\n', 'two\n', 1])
  expect(engine.calls.filter(({ operation }) => operation === 'exec').length).toBe(before + 2)
})

it('a command that is in progress when it stops ends with its exit code, and what has no end is ended', async () => {
  engine.onExec(({ argv }) => (argv[0] === 'slow' ? { stdout: 'done\n', exitCode: 0, afterMs: 1500 } : null))
  const slow = exec(['slow'])
  const followed = (async () => {
    for await (const _line of far.followLogs(ref.id, null, new AbortController().signal));
  })().catch(() => 'ended')
  await systemClock.sleep(200)
  const beganMs = performance.now()
  const closed = served.close()
  expect(await followed).not.toBe('slow')
  expect(performance.now() - beganMs).toBeLessThan(1200)
  expect(await slow).toBe('done\n')
  await closed
  expect(performance.now() - beganMs).toBeLessThan(4000)
  await serve()
})

it('calls never fail while it is stopped and started again under load', async () => {
  let isEnding = false
  const failed: unknown[] = []
  let count = 0
  const callers = Array.from({ length: 8 }, async () => {
    while (!isEnding) {
      await exec(['echo', 'on']).then(
        () => (count += 1),
        (error: unknown) => failed.push(error),
      )
    }
  })
  for (let round = 0; round < 3; round += 1) {
    // By then it watches again, and so hears of the next stop.
    await systemClock.sleep(2500)
    await served.close()
    await serve()
  }
  isEnding = true
  await Promise.all(callers)
  expect(failed).toEqual([])
  expect(count).toBeGreaterThan(100)
})
