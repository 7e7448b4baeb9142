// A second host renews its certificates by itself (decisions/joining.md), while a unit of it runs and a command streams,
// and while any of the processes is killed in the middle of it.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { DAY, SECOND } from '../../src/lib/clock.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { hostIdentitiesIn, identityFileIn } from '../../src/processes/channel.ts'
import { runBesideBerth } from '../../src/operator/beside-berth.ts'
import { giveBlock, listBlocks, takeBlockBack } from '../../src/supervisor/join/blocks.ts'
import { agedIdentity } from '../support/aged-identity.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { hosts, joinAs, ownRowIn, useMachine } from '../support/host-lab.ts'
import { killRole, killSupervisor } from '../support/kill.ts'
import { useBerth } from '../support/use-berth.ts'

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
  east.settings['BERTH_GATEWAY_TLS'] = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const east = useMachine('east', 4, { BERTH_ISOLATION: 'runc' })

/** A host whose last request came to nothing asks again after a minute. */
const RENEWED_MS = 120 * SECOND
const command = async (...args: string[]) => await hosts(berth, settings, ...args)
const rowOf = async (name: string) =>
  (await command('list')).split('\n').find((row) => row.startsWith(`${name} `)) ?? ''
const isReady = async () => expect(await rowOf('east')).toMatch(/^east +ready /)

/** When it joined for the first time: what was signed before that is refused. */
async function joinedLongAgo(): Promise<void> {
  await runBesideBerth(loadConfig({ BERTH_DATA_DIR: berth.dataDir }), async ({ db }) => {
    const since = new Date(Date.now() - 400 * DAY)
    await db.updateTable('hosts').set({ member_since: since }).where('name', '=', 'east').execute()
  })
  // It may have opened its connection with the time of before.
  await killRole(berth, 'server')
}

/** Its certificates are, from now on, those of a host that was last renewed 300 days ago. */
async function age(leftMs = 65 * DAY): Promise<void> {
  const times = { from: new Date(Date.now() - 300 * DAY), to: new Date(Date.now() + leftMs) }
  const files = hostIdentitiesIn(east.berth.dataDir)
  for (const role of ['gateway', 'engine'] as const)
    await writeFile(files[role], await agedIdentity(berth.dataDir, { role, host: 'east' }, times))
}

async function certificates() {
  const files = hostIdentitiesIn(east.berth.dataDir)
  const read = async (file: string) => parseIdentity(await readFile(file, 'utf8')).certificate
  return { engine: await read(files.engine), gateway: await read(files.gateway) }
}

async function untilRenewed(before: Awaited<ReturnType<typeof certificates>>): Promise<void> {
  await eventually(async () => {
    const now = await certificates()
    expect(now.engine).not.toBe(before.engine)
    expect(now.gateway).not.toBe(before.gateway)
  }, RENEWED_MS)
}

/** What the engine shows to a new connection. */
async function shownByEngine(): Promise<string> {
  const port = Number(east.settings['BERTH_ENGINE_TLS']?.split(':')[1])
  const socket = connect({ host: east.address, port, rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const shown = socket.getPeerX509Certificate()?.toString() ?? ''
  socket.destroy()
  return shown
}

/** A command of the unit that counts; `read` returns the next number. */
async function openCounter(unit: Unit) {
  const { baseUrl, apiKey } = berth.credentials
  const cmd = ['sh', '-c', 'i=0; while :; do echo "n$i."; i=$((i+1)); sleep 0.2; done']
  const stop = new AbortController()
  const answer = await fetch(`${baseUrl}/v1/units/${unit.id}/exec`, {
    method: 'POST',
    signal: stop.signal,
    headers: {
      authorization: `Bearer ${apiKey}`,
      accept: 'text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ cmd, timeoutMs: 600_000 }),
  })
  let seen = ''
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) seen += Buffer.from(chunk).toString()
    seen += ' ended'
  })().catch(() => {})
  const last = () => Number([...seen.matchAll(/n(\d+)\./g)].at(-1)?.[1] ?? -1)
  const end = async () => {
    stop.abort()
    await reading
  }
  return { last, hasEnded: () => seen.endsWith(' ended'), end }
}

describe('a host that has joined', () => {
  let unit: Unit
  const began = async () => (await exec(berth, unit, ['cat', '/proc/1/stat'])).stdout.split(' ')[21]

  beforeAll(async () => {
    await joinAs(berth, settings, east)
    await joinedLongAgo()
    await eventually(isReady, 15_000)
    const near = ownRowIn(await command('list')).split(' ')[0] ?? ''
    await command('drain', near)
    unit = await eventually(async () => {
      const made = await createUnit(berth, { image: 'berth.local/debian:12', size: 'nano', name: 'far' })
      if ((await rowOf('east')).includes(made.host.id)) return made
      await berth.call('DELETE', `/v1/units/${made.id}`)
      throw new Error('a unit was placed on a host that is drained')
    }, 20_000)
  }, 120_000)
  afterAll(async () => {
    await eventually(
      async () => expect((await berth.call('DELETE', `/v1/units/${unit.id}`)).status).toBe(200),
      30_000,
    )
  }, 60_000)

  it('gets new certificates by itself while a unit runs and a command streams, and no process restarts', async () => {
    const pids = async () => [
      await east.berth.pidOf('engine'),
      await east.berth.pidOf('gateway'),
      await berth.pidOf('server'),
    ]
    const [first, processes] = [await began(), await pids()]
    const counter = await openCounter(unit)
    await eventually(async () => expect(counter.last()).toBeGreaterThan(0))
    await age()
    const before = await certificates()
    await untilRenewed(before)
    const renewed = await certificates()
    await eventually(async () => expect((await shownByEngine()).trim()).toBe(renewed.engine.trim()), 20_000)
    await eventually(async () => {
      const shown = await readFile(identityFileIn(join(east.berth.dataDir, 'roles', 'gateway')), 'utf8')
      expect(parseIdentity(shown).certificate).toBe(renewed.gateway)
    }, 20_000)
    const at = counter.last()
    await eventually(async () => expect(counter.last()).toBeGreaterThan(at + 3))
    expect(counter.hasEnded()).toBe(false)
    expect(await began()).toBe(first)
    expect(await pids()).toEqual(processes)
    await counter.end()
    expect(await command('log', 'east')).toMatch(/east +has new certificates/)
    const until = new Date(Date.now() + 365 * DAY).toISOString().slice(0, 7)
    expect(await rowOf('east')).toMatch(new RegExp(`^east +ready .* until ${until}-.* nothing$`))
  })

  it.each([
    ['its engine is', async () => void (await killRole(east.berth, 'engine'))],
    ['the server is', async () => void (await killRole(berth, 'server'))],
    [
      'its supervisor, and so all of it, is',
      async () => {
        await killSupervisor(east.berth)
        await east.berth.start(east.settings)
      },
    ],
    [
      "the server's supervisor, and so the whole service, is",
      async () => {
        await killSupervisor(berth)
        await berth.start(settings)
      },
    ],
  ])(
    'has whole pairs of keys and certificates, and renews them later, if %s killed in the middle of it',
    async (_who, kill) => {
      const first = await began()
      const signer = await berth.supervisorPid()
      // What signs is held, so that the request is on its way.
      process.kill(signer, 'SIGSTOP')
      try {
        await age()
        const before = await certificates()
        await eventually(async () => expect(await countRequests()).toBeGreaterThan(0), RENEWED_MS)
        const killing = kill()
        expect(await certificates()).toEqual(before)
        if (signer === (await berth.supervisorPid())) resume(signer)
        await killing
        await untilRenewed(before)
      } finally {
        resume(signer)
      }
      await eventually(isReady, 30_000)
      await eventually(async () => expect(await began()).toBe(first), 30_000)
    },
  )

  it('is told why it gets none once it is not on the list of hosts that have joined, and that it has to join again', async () => {
    const own = (await listBlocks(berth.dataDir)).find(({ name }) => name === 'east')
    if (!own) throw new Error('east has no addresses')
    await takeBlockBack(berth.dataDir, 'east')
    await age(40 * SECOND)
    await eventually(
      async () =>
        expect(await command('log', 'east')).toMatch(/got no new certificates +it was given up or removed/),
      RENEWED_MS,
    )
    await eventually(
      async () =>
        expect(await rowOf('east')).toMatch(/ended on .* its certificates have ended: join it again/),
      RENEWED_MS,
    )
    await killRole(east.berth, 'engine')
    await eventually(async () => expect(await rowOf('east')).toMatch(/^east +away /), 40_000)
    const log = await readFile(join(east.berth.dataDir, 'logs', 'berth.log'), 'utf8')
    expect(log).toContain('certificates were not renewed')
    await eventually(async () => {
      const lines = await readFile(join(east.berth.dataDir, 'logs', 'berth.log'), 'utf8')
      expect(lines).toContain('the certificates of this host have ended, so no server can call it')
    }, 20_000)
    await giveBlock(berth.dataDir, { ...own, others: [] })
    await killSupervisor(east.berth)
    const first = unit.id
    await joinAs(berth, settings, east)
    await eventually(isReady, 30_000)
    expect((await exec(berth, unit, ['echo', first])).stdout).toBe(`${first}\n`)
  })
})

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // It was killed.
  }
}

/** Connections of the server that wait for what signs. */
async function countRequests(): Promise<number> {
  const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n')
  const run = `/run/berth/${(await berth.instance()).id}/renewal.sock`
  return lines.filter((line) => line.includes(run)).length - 1
}
