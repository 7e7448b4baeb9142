// Other machines of a Berth, as network namespaces beside this machine's own: each has a wire to it, and a host is started
// on it as an operator does it.

import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { namespacePath } from '../../src/engine/oci/network/names.ts'
import {
  baseEnvironment,
  Berth,
  type DataDir,
  eventually,
  makeDataDir,
  nameDataDir,
  type Settings,
} from './berth.ts'
import { cleanHost } from './host-state.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TIMEOUT_MS = 20_000

export type Machine = {
  name: string
  /** Its address on the wire, and this machine's. */
  address: string
  near: string
  /** What is started there. */
  berth: Berth
  settings: Settings
  setWire: (state: 'up' | 'down') => Promise<void>
}

/**
 * A machine for the tests of the file, on which Berth has never been started. After them, and after the hooks that the file
 * registers below this call, Ctrl-C ends its host, and nothing of it is left.
 */
export function useMachine(name: string, index: number, more: Settings = {}): Machine {
  const id = `lab${randomBytes(2).toString('hex')}`
  // Of the addresses for documentation, so that no machine's own are among them.
  const addressOf = (last: number) => `198.51.100.${4 * index + last}`
  const ip = async (...args: string[]) => void (await runOrThrow('ip', args, { timeoutMs: TIMEOUT_MS }))
  const settings: Settings = { BERTH_ROLE: 'host', ...more }
  const path = nameDataDir()
  const berth = new Berth(path, undefined, namespacePath(id))
  let data: DataDir

  beforeAll(async () => {
    data = await makeDataDir(path)
    settings['BERTH_ENGINE_TLS'] = `0.0.0.0:${await freePort('127.0.0.1')}`
    await ip('netns', 'add', id)
    await ip('link', 'add', id, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', id)
    await ip('address', 'add', `${addressOf(1)}/30`, 'dev', id)
    await ip('link', 'set', id, 'up')
    await ip('-n', id, 'address', 'add', `${addressOf(2)}/30`, 'dev', 'eth0')
    for (const device of ['eth0', 'lo']) await ip('-n', id, 'link', 'set', device, 'up')
    await ip('-n', id, 'route', 'add', 'default', 'via', addressOf(1))
  })
  afterAll(async () => {
    try {
      if (berth.wasStarted) {
        if (!berth.hasEnded) expect(await berth.pressCtrlC()).toBe(0)
        await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost), TIMEOUT_MS)
      }
      await data.remove()
    } finally {
      await ip('netns', 'delete', id)
    }
  })
  const setWire = async (state: 'up' | 'down') => await ip('link', 'set', id, state)
  return { name, address: addressOf(2), near: addressOf(1), berth, settings, setWire }
}

/** One of the operator's commands beside a Berth. Rejects with what it printed if it fails. */
export async function hosts(berth: Berth, settings: Settings, ...args: string[]): Promise<string> {
  const env = baseEnvironment(berth.dataDir, settings)
  return (await promisify(execFile)(process.execPath, [main, 'hosts', ...args], { env })).stdout
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
