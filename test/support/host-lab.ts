// Other machines of a Berth, as network namespaces beside this machine's own (wire.ts): a host is started on each as an
// operator does it.

import { execFile, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Listed } from '../../src/engine/oci/images/inventory.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { freePort } from '../../src/lib/free-port.ts'
import {
  baseEnvironment,
  Berth,
  type DataDir,
  eventually,
  makeDataDir,
  nameDataDir,
  type Settings,
} from './berth.ts'
import { createUnit } from './berth-units.ts'
import { clearAfterwards } from './clear-afterwards.ts'
import { withDatabase } from './host-invariants.ts'
import { cleanHost } from './host-state.ts'
import { makeTeam } from './make.ts'
import { callAs, type OwnedUnit } from './unit-calls.ts'
import { nameWire } from './wire.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TIMEOUT_MS = 20_000
/** Where none of the images is there yet, on a machine that does other things besides. */
const BUILD_MS = 3_600_000

export type Machine = {
  name: string
  /** Its address on the wire, and this machine's. */
  address: string
  near: string
  /** Its network namespace, as a path. */
  network: string
  /** What is started there. */
  berth: Berth
  settings: Settings
  setWire: (state: 'up' | 'down') => Promise<void>
}

/**
 * A machine for the tests of the file, on which Berth has never been started. After them, and after the hooks that the file
 * registers below this call, Ctrl-C ends its host, and nothing of it is left. `images`: the built-in ones of its units.
 */
export function useMachine(
  name: string,
  index: number,
  more: Settings = {},
  images: string[] = ['debian:12'],
): Machine {
  const wire = nameWire(index)
  const settings: Settings = { BERTH_ROLE: 'host', ...more }
  const path = nameDataDir()
  const berth = new Berth(path, undefined, wire.network)
  let data: DataDir

  clearAfterwards(path, wire.network)
  beforeAll(async () => {
    data = await makeDataDir(path)
    settings['BERTH_ENGINE_TLS'] = `0.0.0.0:${await freePort('127.0.0.1')}`
    await buildImages(path, images)
    await wire.open()
  }, BUILD_MS)
  afterAll(async () => {
    try {
      if (berth.wasStarted) {
        if (!berth.hasEnded) expect(await berth.pressCtrlC()).toBe(0)
        await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost), TIMEOUT_MS)
      }
      await data.remove()
    } finally {
      await wire.close()
    }
  })
  const { address, near, network } = wire
  return { name, address, near, network, berth, settings, setWire: wire.set }
}

/**
 * Builds those of these built-in images that are missing, from here: all machines of a test share the directory of images, and
 * only this one reaches the archive of Debian.
 */
export async function buildImages(dataDir: string, images: string[]): Promise<void> {
  const env = baseEnvironment(dataDir)
  const listed = JSON.parse(await operate(env, 'images', 'list', '--json')) as Listed[]
  const isHere = (image: string) =>
    listed.some(({ reference, digest }) => reference === `berth.local/${image}` && digest !== null)
  const missing = images.filter((image) => !isHere(image))
  if (missing.length > 0) await operate(env, 'images', 'build', ...missing)
}

/** One of the operator's commands beside a Berth. Rejects with what it printed if it fails. */
export async function hosts(berth: Berth, settings: Settings, ...args: string[]): Promise<string> {
  return await operate(baseEnvironment(berth.dataDir, settings), 'hosts', ...args)
}

async function operate(env: Settings, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [main, ...args], { env })).stdout
}

/**
 * As the operator does it: one command waits on the server's machine and prints what to run on the other one, which is
 * done. Resolves when that host is ready.
 */
export async function joinAs(berth: Berth, settings: Settings, machine: Machine): Promise<void> {
  const args = [main, 'hosts', 'join-token', machine.name, `${machine.near}:0`]
  const env = baseEnvironment(berth.dataDir, settings)
  const door = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<number | null>((resolve) => door.once('close', resolve))
  let ready: Promise<unknown> | null = null
  try {
    for await (const line of createInterface({ input: door.stdout })) {
      const token = /BERTH_JOIN=(berth-join-[\w-]+)/.exec(line)?.[1]
      if (token === undefined) continue
      machine.settings['BERTH_JOIN'] = token
      ready = machine.berth.start(machine.settings)
    }
    expect(await ended).toBe(0)
    await ready
  } finally {
    door.kill()
  }
}

/** Whether a row of `list` is that of the server's own host: by its address, since what to do next may name it too. */
const isOfServer = (row: string) => / {2}this machine( {2}|$)/.test(row)

/** The row of the server's own host in what `list` prints. It begins with its name. */
export const ownRowIn = (listed: string) => listed.split('\n').find(isOfServer) ?? ''

/** The server's own host gets no new units. Resolves once the server has seen that, which is within two seconds. */
export async function drainOwnHost(berth: Berth, settings: Settings): Promise<void> {
  const own = ownRowIn(await hosts(berth, settings, 'list'))
  await hosts(berth, settings, 'drain', own.split(' ')[0] ?? '')
  await eventually(async () => {
    const unit = await createUnit(berth, { name: 'probe', image: 'berth.local/debian:12', size: 'nano' })
    expect((await berth.call('DELETE', `/v1/units/${unit.id}`)).status).toBe(200)
    expect(own).not.toContain(unit.host.id)
  }, TIMEOUT_MS)
}

/** A unit of a new team on the host of this name. `command` is the operator's. */
export async function createUnitOn(
  { berth, command, name }: { berth: Berth; command: (...args: string[]) => Promise<string>; name: string },
  spec: Record<string, unknown> = {},
): Promise<OwnedUnit> {
  // A host that has the image is preferred.
  const drained: string[] = []
  for (;;) {
    const { key } = await withDatabase(
      await berth.instance(),
      async (db) => await makeTeam({ app: { db, clock: systemClock } }),
    )
    const owner = { berth, key }
    const whole = { name: 'unit', image: 'berth.local/debian:12', size: 'nano', ...spec }
    const body = { spec: whole, waitTimeoutMs: 300_000 }
    const made = await callAs<RunResult>(owner, 'POST', '/v1/units', body)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const [unit] = made.body.units
    if (!unit) throw new Error('a create answered no unit')
    const row = (await command('list')).split('\n').find((each) => each.includes(unit.host.id)) ?? ''
    const there = row.split(' ')[0] ?? ''
    if (there === name) {
      for (const each of drained) await command('undrain', each)
      return { owner, unit }
    }
    await callAs(owner, 'DELETE', `/v1/units/${unit.id}`)
    if (isOfServer(row) || drained.includes(there)) continue
    await command('drain', there)
    drained.push(there)
  }
}
