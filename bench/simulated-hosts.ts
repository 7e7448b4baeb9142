// Hosts in memory for `npm run bench:hosts`: a process that a server calls as it calls the engines of other machines. Its
// parent sends it what they are, and is told once they answer.

import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEpochs } from '../src/engine/epochs.ts'
import { serveEngine } from '../src/engine/ipc/server.ts'
import { systemClock } from '../src/lib/clock.ts'
import { parseIdentity } from '../src/lib/fleet-identity.ts'
import { silentLog } from '../src/lib/log.ts'
import { createFakeEngine, type FakeEngine } from '../test/support/fake-engine/fake-engine.ts'

export type SimulatedUnit = { id: string; state: 'running' | 'frozen' | 'stopped' }
export type SimulatedHost = {
  name: string
  port: number
  /** In PEM. */
  identity: string
  subnet: number
  networkGroup: number
  units: SimulatedUnit[]
}

const SIZE = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
const directory = await mkdtemp(join(tmpdir(), 'berth-bench-hosts-'))

process.on('message', (hosts: SimulatedHost[]) => {
  void Promise.all(hosts.map(openHost)).then(() => process.send?.('ready'))
})
process.on('disconnect', () => process.exit(0))

async function openHost({ name, port, identity, subnet, networkGroup, units }: SimulatedHost): Promise<void> {
  const engine = createFakeEngine({ clock: systemClock, subnet, instance: `i${subnet}` })
  engine.setCapacity({ cpus: 64, memoryMb: 1_000_000, availableMemoryMb: 1_000_000 })
  const { digest } = await engine.pull('berth.local/debian:12')
  for (const unit of units) await makeMachine(engine, unit, { imageDigest: digest, networkGroup })
  await serveEngine({
    engine,
    epochs: await openEpochs(join(directory, `${name}.epoch`)),
    socketPath: join(directory, `${name}.sock`),
    socketGid: 0,
    tls: { host: '127.0.0.1', port, identity: parseIdentity(identity) },
    log: silentLog,
  })
}

async function makeMachine(
  engine: FakeEngine,
  { id, state }: SimulatedUnit,
  where: { imageDigest: string; networkGroup: number },
): Promise<void> {
  await engine.create({ id, isolation: 'gvisor', size: SIZE, volume: null, ...where })
  if (state === 'stopped') return
  const ref = { id, generation: 1 }
  const nothing = { entrypoint: null, cmd: ['sleep', 'infinity'], env: {}, files: [] }
  await engine.start(ref, { hostname: 'unit', ...nothing, searchDomain: 'berth', egress: null })
  if (state === 'frozen') await engine.freeze(ref)
}
