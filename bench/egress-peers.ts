// What stands beside the egress process in a measurement: a program of Node that only pipes, and Debian's haproxy. Each
// listens where the egress process of a lab would, so that the firewall brings it the connections of a restricted machine.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../src/lib/process.ts'
import { keptForStreams } from '../src/supervisor/process-command.ts'
import { EGRESS_PORTS, type Lab, PUBLIC } from '../test/support/network-lab/lab.ts'

export type EgressPeer = 'node pipe' | 'haproxy'

/** Those that are installed here. */
export async function egressPeers(): Promise<EgressPeer[]> {
  const found = await run('sh', ['-c', 'command -v haproxy'], { timeoutMs: 5000 })
  if (found.exitCode === 0) return ['node pipe', 'haproxy']
  console.log('haproxy is not installed here (Debian: haproxy): it is no peer in this run.')
  return ['node pipe']
}

/** `directory`: for its files. */
export async function startEgressPeer(peer: EgressPeer, lab: Lab, directory: string): Promise<ChildProcess> {
  const config = join(directory, 'haproxy.cfg')
  await writeFile(config, haproxyConfig(lab.gateway))
  const command =
    peer === 'haproxy' ? ['haproxy', '-db', '-f', config] : [process.execPath, '-e', pipe(lab.gateway)]
  const child = spawn('nsenter', [`--net=${lab.host}`, ...command], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...keptForStreams },
  })
  await once(child, 'spawn')
  return child
}

const pipe = (address: string) => `
  const { connect, createServer } = require('node:net')
  createServer({ allowHalfOpen: true, noDelay: true }, (machine) => {
    const host = connect({ host: '${PUBLIC}', port: 443, allowHalfOpen: true, noDelay: true })
    for (const socket of [machine, host]) socket.on('error', () => {})
    machine.pipe(host).pipe(machine)
  }).listen(${EGRESS_PORTS.tls}, '${address}')`

const haproxyConfig = (address: string) => `
global
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen tls
  bind ${address}:${EGRESS_PORTS.tls}
  option splice-auto
  server host ${PUBLIC}:443
`
