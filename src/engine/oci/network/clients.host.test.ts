// The clients that people use, as they are on this host, in the namespaces of machines: each reaches a registry of the test's own
// by a listed name, and with a brokered secret in the way in which it sends one. A client that this host lacks is skipped.

import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromiumOptions } from '../../../../test/support/chromium.ts'
import type { BrokerWorld, Sent } from '../../../../test/support/network-lab/broker-world.ts'
import { CLIENTS_HOST, clients, homeFiles } from '../../../../test/support/network-lab/clients.ts'
import { type Lab, NEIGHBOUR, openLab, PUBLIC } from '../../../../test/support/network-lab/lab.ts'
import { PLACEHOLDER } from '../../../../test/support/network-lab/registries.ts'
import { startEgressIn } from '../../../../test/support/network-lab/start-egress.ts'
import { startIn } from '../../../../test/support/network-lab/start-in.ts'
import { bundleVariables } from '../../../lib/egress/trust.ts'
import { run } from '../../../lib/process.ts'
import type { MachineEgress } from '../../egress.ts'

const VALUE = 'sk-the-real-one'

let lab: Lab
let home: string
const children: ChildProcess[] = []
const namespaces: Record<string, string> = {}
const sent: Sent[] = []

const rules: MachineEgress = {
  mode: 'listed',
  allow: [CLIENTS_HOST],
  siblings: 'none',
  stack: null,
  secrets: [],
}
const secret = { name: 'KEY', placeholder: PLACEHOLDER, value: VALUE, hosts: [CLIENTS_HOST] }

beforeAll(async () => {
  lab = await openLab()
  home = await mkdtemp(join(tmpdir(), 'clients-'))
  const world: BrokerWorld = { nameserver: NEIGHBOUR, address: PUBLIC, certified: [CLIENTS_HOST] }
  const [host, first] = await startIn(lab.outside, 'broker-world', world)
  const { roots } = first as { roots: string }
  host.on('message', (message: { sent?: Sent }) => message.sent && sent.push(message.sent))
  const network = await lab.openNetwork()
  await network.recover([])
  for (const machineId of ['listed', 'brokered']) {
    const { namespacePath } = await network.attach({ machineId, group: 1, address: null })
    namespaces[machineId] = namespacePath
  }
  const processes = await startEgressIn(lab, { stateDir: home, roots })
  children.push(host, processes)
  await network.restrict('listed', rules)
  await network.restrict('brokered', { ...rules, secrets: [secret] })
  await writeFile(join(home, 'listed.pem'), roots)
  // As storage/trust.ts writes it.
  const authority = await readFile(join(home, '1', 'ca.crt'), 'utf8')
  await writeFile(join(home, 'brokered.pem'), `${roots}\n${authority}`)
  await writeFile(join(home, 'resolv.conf'), `nameserver ${lab.gateway}\n`)
  await prepareHome()
}, 60_000)
afterAll(async () => {
  await lab?.close()
  for (const child of children) child.kill('SIGKILL')
  await rm(home, { recursive: true })
})
beforeEach(() => {
  sent.length = 0
})

describe.each(clients)('$name', ({ program, command, prints, header, sends }) => {
  test.skipIf(!isHere(program))('reaches a listed host, by its own certificate', async () => {
    const { stdout, stderr } = await inside('listed', command)
    expect(stdout, stderr).toContain(prints)
    expect(sent.map((each) => each[header]).join()).toContain(sends(PLACEHOLDER))
  })

  test.skipIf(!isHere(program))('has the value put into what it sends to the host of a secret', async () => {
    const { stdout, stderr } = await inside('brokered', command)
    expect(stdout, stderr).toContain(prints)
    expect(sent.at(-1)?.[header]).toBe(sends(VALUE))
    expect(JSON.stringify(sent)).not.toContain(PLACEHOLDER)
  })
})

test('a browser reaches a listed host, with the long ClientHello that it sends', async () => {
  const page = ['--dump-dom', `--user-data-dir=${join(home, 'profile')}`, `https://${CLIENTS_HOST}/`]
  const command = [
    chromiumOptions.executablePath,
    ...chromiumOptions.args,
    '--ignore-certificate-errors',
    ...page,
  ]
  expect((await inside('listed', command)).stdout).toContain(`hello from ${CLIENTS_HOST}`)
})

function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((directory) => existsSync(join(directory, program)))
}

async function prepareHome(): Promise<void> {
  for (const [path, content] of Object.entries(homeFiles)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
}

/** With the environment of a unit: nothing of this host but where its programs are. */
async function inside(machine: 'listed' | 'brokered', command: string[]) {
  const trusted = join(home, `${machine}.pem`)
  const rustup = process.env['RUSTUP_HOME'] ?? join(process.env['HOME'] ?? '', '.rustup')
  const node = dirname(process.execPath)
  const environment = [
    `PATH=${process.env['PATH']}${delimiter}${node}`,
    `HOME=${home}`,
    `WGET_CA=${trusted}`,
    `RUSTUP_HOME=${rustup}`,
    `CARGO_HOME=${join(home, '.cargo')}`,
    'npm_config_globalconfig=/dev/null',
    'npm_config_update_notifier=false',
    'GIT_TERMINAL_PROMPT=0',
    'GIT_CONFIG_GLOBAL=/dev/null',
    'GIT_CONFIG_SYSTEM=/dev/null',
    ...bundleVariables.map((name) => `${name}=${trusted}`),
  ]
  const script = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'
  const program = [
    'sh',
    '-c',
    script,
    'sh',
    join(home, 'resolv.conf'),
    'env',
    '-i',
    ...environment,
    ...command,
  ]
  const args = [`--net=${namespaces[machine]}`, 'unshare', '--mount', ...program]
  return await run('nsenter', args, { timeoutMs: 60_000 })
}
