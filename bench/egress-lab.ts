// A network of namespaces for measuring egress: machines without rules and with many, the processes that decide by name as
// they are, and a nameserver and a host of the benchmark's own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeKey, proofCertificate, toPem } from '../src/certificates/signed.ts'
import type { MachineEgress } from '../src/engine/egress.ts'
import type { Outcome, Step } from '../test/support/network-lab/egress-client.ts'
import {
  EGRESS_PORTS,
  NEIGHBOUR,
  type NetworkProcess,
  openLab,
  PUBLIC,
} from '../test/support/network-lab/lab.ts'
import { startEgressIn } from '../test/support/network-lab/start-egress.ts'
import { startIn } from '../test/support/network-lab/start-in.ts'
import { type EgressPeer, startEgressPeer } from './egress-peers.ts'

export type EgressLab = {
  network: NetworkProcess
  /** Of the egress process and the resolvers, or of the peer. */
  pid: number
  attach: (machine: string) => Promise<void>
  from: (machine: string, ...steps: Step[]) => Promise<Outcome[]>
  /** Opens TLS connections that stay idle. `cut` resolves to when the last one ended, in milliseconds of the clock. */
  hold: (machine: string, count: number, name: string) => Promise<{ cut: Promise<number> }>
  close: () => Promise<void>
}

const script = (file: string) => new URL(`../test/support/network-lab/${file}.ts`, import.meta.url).pathname

/** 128 entries, as many as a unit may have; the last one names the host that is measured. */
export const manyRules: MachineEgress = {
  mode: 'listed',
  allow: [
    ...Array.from({ length: 63 }, (_, at) => `host-${at}.example.net`),
    ...Array.from({ length: 32 }, (_, at) => `*.zone-${at}.example.net`),
    ...Array.from({ length: 32 }, (_, at) => `198.51.${100 + at}.0/24:5432`),
    'a.example.com',
  ],
  siblings: 'none',
  stack: null,
  secrets: [],
}

/** `peer`: what connections go through instead of the egress process. */
export async function openEgressLab(peer: EgressPeer | null = null): Promise<EgressLab> {
  const lab = await openLab()
  const stateDir = await mkdtemp(join(tmpdir(), 'bench-egress-'))
  const children: ChildProcess[] = []
  const namespaces = new Map<string, string>()
  const close = async () => {
    await lab.close()
    for (const child of children) child.kill('SIGKILL')
    await rm(stateDir, { recursive: true })
  }
  const key = await makeKey()
  const cert = proofCertificate({ name: 'a.example.com', keyAuthorization: '' }, { key, now: new Date() })
  try {
    const world = { nameserver: NEIGHBOUR, address: PUBLIC, addresses: {}, key: toPem(key), cert }
    const [outside] = await startIn(lab.outside, 'egress-world', world)
    children.push(outside)
    const network = await lab.openNetwork()
    await network.recover([])
    const ports = peer === null ? EGRESS_PORTS : { ...EGRESS_PORTS, tls: 0 }
    const processes = await startEgressIn(lab, { stateDir, ports })
    children.push(processes)
    const beside = peer === null ? processes : await startEgressPeer(peer, lab, stateDir)
    children.push(beside)
    const namespaceOf = (machine: string) => namespaces.get(machine) ?? ''
    return {
      network,
      pid: beside.pid ?? 0,
      attach: async (machineId) => {
        const { namespacePath } = await network.attach({ machineId, group: 1, address: null })
        namespaces.set(machineId, namespacePath)
      },
      from: async (machine, ...steps) => {
        const args = [script('egress-client'), lab.gateway, JSON.stringify(steps)]
        return JSON.parse(await lab.inside(namespaceOf(machine), process.execPath, ...args)) as Outcome[]
      },
      hold: async (machine, count, name) => await holdOpen(namespaceOf(machine), count, name),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function holdOpen(namespace: string, count: number, name: string) {
  const program = `
    const { connect } = require('node:tls')
    let open = 0, left = ${count}
    for (let i = 0; i < ${count}; i++) {
      const socket = connect({ host: '${PUBLIC}', port: 443, servername: '${name}', rejectUnauthorized: false })
      socket.once('data', () => { if (++open === ${count}) process.stdout.write('open') })
      socket.on('error', () => {}).once('close', () => { if (--left === 0) process.stdout.write(' ' + (performance.timeOrigin + performance.now())) })
    }`
  const child = spawn('nsenter', [`--net=${namespace}`, process.execPath, '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return { cut: once(child.stdout, 'data').then(([said]) => Number(String(said))) }
}
