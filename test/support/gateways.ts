// Two gateway processes, and the units that they serve: on the server's own host, or on one that has joined.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from 'vitest'
import { localCaFile } from '../../src/certificates/local-ca.ts'
import { freePort } from '../../src/lib/free-port.ts'
import type { Berth, Settings } from './berth.ts'
import { destroyAll } from './berth-units.ts'
import { expectInvariants } from './host-invariants.ts'
import { drainOwnHost, joinAs, useMachine } from './host-lab.ts'
import { useBerth } from './use-berth.ts'

export type Gateways = {
  /** Whose API the units have. */
  berth: Berth
  /** What the gateways are processes of. */
  host: Berth
  /** Where they answer visitors. */
  address: string
  /** The origin of their metrics. */
  metrics: string
  /** The authority of their certificates, and its file. */
  ca: string
  caFile: string
  /** Runs a command in the network of their host, and returns what it printed. */
  run: (command: string, ...args: string[]) => Promise<string>
}

export const places = ['its own host', 'a host that has joined'] as const

const common = { BERTH_ISOLATION: 'runc' }
const gateways = { ...common, BERTH_GATEWAY_WORKERS: '2' }

/** For the tests of the suite that it is called in. What it returns is whole in the hooks below this call. */
export function useGateways(place: (typeof places)[number], index: number, settings: Settings): Gateways {
  return place === 'its own host' ? useOwn(settings) : useJoined(index, settings)
}

function useOwn(settings: Settings): Gateways {
  const berth = useBerth(null)
  const own = newGateways(berth, berth, '127.0.0.1', null)
  beforeAll(async () => {
    const port = await freePort(own.address)
    await berth.start({ ...settings, ...gateways, BERTH_GATEWAY_METRICS: `${own.address}:${port}` })
    await complete(own, port)
  })
  afterAll(async () => await expectInvariants(berth))
  return own
}

function useJoined(index: number, settings: Settings): Gateways {
  const near: Settings = { ...settings, ...common }
  beforeAll(async () => void (near['BERTH_HOSTS_ADDRESS'] = `0.0.0.0:${await freePort('0.0.0.0')}`))
  const berth = useBerth(() => near)
  const machine = useMachine('east', index, { ...gateways, BERTH_DOMAIN: 'east.berth.localhost' })
  const far = newGateways(berth, machine.berth, machine.address, machine.network)
  beforeAll(async () => {
    const [tls, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')]
    machine.settings['BERTH_GATEWAY_TLS'] = `0.0.0.0:${tls}`
    machine.settings['BERTH_GATEWAY_METRICS'] = `0.0.0.0:${port}`
    await joinAs(berth, near, machine)
    await drainOwnHost(berth, near)
    await complete(far, port)
  })
  afterAll(async () => await destroyAll(berth))
  return far
}

function newGateways(berth: Berth, host: Berth, address: string, network: string | null): Gateways {
  const enter = network === null ? [] : ['nsenter', `--net=${network}`]
  return {
    berth,
    host,
    address,
    metrics: '',
    ca: '',
    caFile: localCaFile(host.dataDir),
    run: async (command, ...args) => {
      const [file = '', ...rest] = [...enter, command, ...args]
      return (await promisify(execFile)(file, rest)).stdout
    },
  }
}

async function complete(to: Gateways, metricsPort: number): Promise<void> {
  to.metrics = `http://${to.address}:${metricsPort}`
  to.ca = await readFile(to.caFile, 'utf8')
}
