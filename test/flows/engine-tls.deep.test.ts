// The engine of a whole Berth over TLS, as a server on another machine calls it: real machines, the operator's
// commands, and two servers that follow each other (decisions/channels.md).

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { askEngineEpoch, connectEngine } from '../../src/engine/ipc/client.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { kindOf } from '../engine/suite.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import { useBerth } from '../support/use-berth.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const HOST = '127.0.0.1'

/** The data directory of the other machine, where the server is. */
let elsewhere: string
let settings: Record<string, string>
let address: Parameters<typeof askEngineEpoch>[0]

beforeAll(async () => {
  elsewhere = await mkdtemp(join(tmpdir(), 'berth-elsewhere-'))
  const [port, file] = [await freePort(HOST), join(elsewhere, 'east.pem')]
  await hosts('certificate', 'east', file)
  settings = { BERTH_ENGINE_TLS: `${HOST}:${port}`, BERTH_ENGINE_CERTIFICATE: file }
  const server = { role: 'server', host: 'lead' } as const
  const identity = parseIdentity(await issueIdentity(elsewhere, server, new Date()))
  address = { host: HOST, port, name: 'east', identity }
  return async () => await rm(elsewhere, { recursive: true })
})

const commandOf = (...args: string[]) => [join(project, 'src/main.ts'), 'hosts', ...args]

async function hosts(...args: string[]): Promise<string> {
  const env = { ...process.env, BERTH_DATA_DIR: elsewhere }
  return (await promisify(execFile)(process.execPath, commandOf(...args), { env })).stdout
}

const berth = useBerth(() => settings)

describe('an engine that answers over TLS', () => {
  let unit: Unit
  beforeAll(async () => {
    unit = await createUnit(berth, {
      name: 'east',
      image: 'berth.local/debian:12',
      cmd: ['sleep', 'infinity'],
    })
  })

  const serverOf = (epoch: number): Engine => connectEngine({ address, epoch, onLost: () => {} })
  const echo = async (engine: Engine, generation: number) => {
    const printed: Buffer[] = []
    const request = { argv: ['echo', 'from elsewhere'], stdin: null, timeoutMs: 20_000 }
    await engine.exec({ id: unit.id, generation }, request, ({ data }) => void printed.push(data))
    return Buffer.concat(printed).toString()
  }

  it('says to an operator elsewhere what it has', async () => {
    const { port } = address as { port: number }
    expect(await hosts('check', 'east', `${HOST}:${port}`)).toMatch(/answers.* It has .*runc.* processors/)
  })

  it('does for a server elsewhere what it does for its own: commands, files, logs, sleep and wake', async () => {
    const engine = serverOf(await askEngineEpoch(address))
    const found = (await engine.list()).find(({ id }) => id === unit.id)
    const ref = { id: unit.id, generation: found?.generation ?? 0 }
    expect(await echo(engine, ref.generation)).toBe('from elsewhere\n')
    await engine.writeFile(ref, '/tmp/letter', Buffer.from('written from elsewhere'))
    expect((await exec(berth, unit, ['cat', '/tmp/letter'])).stdout).toBe('written from elsewhere')
    await engine.freeze(ref)
    await engine.thaw(ref)
    expect(await echo(engine, ref.generation)).toBe('from elsewhere\n')
  })

  it('follows a server elsewhere that takes over, and then its own again, and its unit runs on', async () => {
    const before = await askEngineEpoch(address)
    const taking = serverOf(before + 1)
    const generation = (await taking.list()).find(({ id }) => id === unit.id)?.generation ?? 0
    expect(await echo(taking, generation)).toBe('from elsewhere\n')
    // Its own server is refused, ends, and takes the lead anew above the other one.
    await eventually(async () => expect(await askEngineEpoch(address)).toBeGreaterThan(before + 1))
    await eventually(async () =>
      expect((await listUnits(berth)).map(({ state }) => state)).toEqual(['running']),
    )
    expect(await kindOf(echo(taking, generation))).toBe('stale_caller')
    expect((await exec(berth, unit, ['cat', '/tmp/letter'])).stdout).toBe('written from elsewhere')
  })
})
