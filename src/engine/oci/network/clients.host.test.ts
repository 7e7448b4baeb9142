// The clients that people use, as they are on this host, in the namespaces of machines: each reaches a registry of the test's own
// by a listed name, and with a brokered secret in the way in which it sends one. A client that this host lacks is skipped.

import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BrokerWorld, Sent } from '../../../../test/support/network-lab/broker-world.ts'
import { type Lab, NEIGHBOUR, openLab, PUBLIC } from '../../../../test/support/network-lab/lab.ts'
import { COMMIT } from '../../../../test/support/network-lab/registries.ts'
import { startEgressIn } from '../../../../test/support/network-lab/start-egress.ts'
import { startIn } from '../../../../test/support/network-lab/start-in.ts'
import { bundleVariables } from '../../../lib/egress/trust.ts'
import { run } from '../../../lib/process.ts'
import type { MachineEgress } from '../../egress.ts'

const HOST = 'api.example.com'
const PLACEHOLDER = 'berth_secret_0123456789abcdef'
const VALUE = 'sk-the-real-one'
const VERSION = '1.2.3'
const basic = `Basic ${Buffer.from(`x:${VALUE}`).toString('base64')}`
const withUser = `https://x:${PLACEHOLDER}@${HOST}`

let lab: Lab
let home: string
const children: ChildProcess[] = []
const namespaces: Record<string, string> = {}
const sent: Sent[] = []

const rules: MachineEgress = { mode: 'listed', allow: [HOST], siblings: 'none', stack: null, secrets: [] }
const secret = { name: 'KEY', placeholder: PLACEHOLDER, value: VALUE, hosts: [HOST] }

beforeAll(async () => {
  lab = await openLab()
  home = await mkdtemp(join(tmpdir(), 'clients-'))
  const world: BrokerWorld = { nameserver: NEIGHBOUR, address: PUBLIC, certified: [HOST] }
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

/** Each prints what it was answered; `how` is how it sends the secret. */
const clients: { name: string; command: string[]; prints: string; how: keyof Sent; value: string }[] = [
  {
    name: 'git with a user in the URL',
    command: ['git', 'ls-remote', `${withUser}/repository.git`],
    prints: COMMIT,
    how: 'authorization',
    value: basic,
  },
  {
    name: 'git with a header of its configuration',
    command: [
      'git',
      '-c',
      `http.extraHeader=Authorization: Bearer ${PLACEHOLDER}`,
      'ls-remote',
      `https://${HOST}/repository.git`,
    ],
    prints: COMMIT,
    how: 'authorization',
    value: `Bearer ${VALUE}`,
  },
  {
    name: 'pip',
    command: [
      'pip',
      '--isolated',
      '--disable-pip-version-check',
      'index',
      'versions',
      'thing',
      '--index-url',
      `${withUser}/simple`,
    ],
    prints: VERSION,
    how: 'authorization',
    value: basic,
  },
  {
    name: 'npm',
    command: [
      'npm',
      'view',
      'thing',
      'version',
      `--registry=https://${HOST}/`,
      `--//${HOST}/:_authToken=${PLACEHOLDER}`,
    ],
    prints: VERSION,
    how: 'authorization',
    value: `Bearer ${VALUE}`,
  },
  {
    name: 'cargo',
    command: ['cargo', 'search', 'thing', '--registry', 'lab'],
    prints: VERSION,
    how: 'authorization',
    value: VALUE,
  },
  {
    name: 'wget',
    command: [
      'sh',
      '-c',
      `wget -qO- --ca-certificate="$SSL_CERT_FILE" --header="X-Key: ${PLACEHOLDER}" https://${HOST}/thing`,
    ],
    prints: VERSION,
    how: 'key',
    value: VALUE,
  },
  {
    name: 'python3',
    command: [
      'python3',
      '-c',
      `import urllib.request as r; print(r.urlopen(r.Request('https://${HOST}/thing', headers={'X-Key': '${PLACEHOLDER}'})).read().decode())`,
    ],
    prints: VERSION,
    how: 'key',
    value: VALUE,
  },
  {
    name: 'java with the authority in its own store',
    command: ['sh', '-c', javaCommand()],
    prints: VERSION,
    how: 'key',
    value: VALUE,
  },
]

describe.each(clients)('$name', ({ name, command, prints, how, value }) => {
  test.skipIf(!isHere(name.split(' ')[0] ?? ''))(
    'reaches a listed host, by its own certificate',
    async () => {
      expect((await inside('listed', command)).stdout).toContain(prints)
      expect(sent.map((each) => each[how]).join()).toContain(
        how === 'authorization' && value === basic
          ? Buffer.from(`x:${PLACEHOLDER}`).toString('base64')
          : PLACEHOLDER,
      )
    },
  )

  test.skipIf(!isHere(name.split(' ')[0] ?? ''))(
    'has the value put into what it sends to the host of a secret',
    async () => {
      expect((await inside('brokered', command)).stdout).toContain(prints)
      expect(sent.at(-1)?.[how]).toBe(value)
      expect(JSON.stringify(sent)).not.toContain(PLACEHOLDER)
    },
  )
})

test.skipIf(!isHere('chromium'))(
  'a browser reaches a listed host, with the long ClientHello that it sends',
  async () => {
    const options = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
    const quiet = [
      '--disable-background-networking',
      '--disable-component-update',
      '--ignore-certificate-errors',
    ]
    const page = ['--dump-dom', `--user-data-dir=${join(home, 'profile')}`, `https://${HOST}/`]
    expect((await inside('listed', ['chromium', ...options, ...quiet, ...page])).stdout).toContain(
      `hello from ${HOST}`,
    )
  },
)

function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((directory) => existsSync(join(directory, program)))
}

/** Java reads no bundle in PEM: it gets the last certificate of the file, as docs/guides/secrets.md says. */
function javaCommand(): string {
  const asks = '"$HOME/Ask.java"'
  const store = '"$HOME/$NAME.jks"'
  const last = `awk '/BEGIN/ {c = ""} {c = c $0 "\\n"} END {printf "%s", c}' "$SSL_CERT_FILE"`
  return `${last} | keytool -importcert -noprompt -alias berth -storepass changeit -keystore ${store} && java -Djavax.net.ssl.trustStore=${store} -Djavax.net.ssl.trustStorePassword=changeit ${asks}`
}

async function prepareHome(): Promise<void> {
  const cargo = join(home, '.cargo')
  await mkdir(cargo)
  await writeFile(
    join(cargo, 'config.toml'),
    `[registries.lab]\nindex = "sparse+https://${HOST}/index/"\ntoken = "${PLACEHOLDER}"\ncredential-provider = "cargo:token"\n`,
  )
  await writeFile(
    join(home, 'Ask.java'),
    `import java.net.URI; import java.net.http.*;
public class Ask { public static void main(String[] none) throws Exception {
  var request = HttpRequest.newBuilder(URI.create("https://${HOST}/thing")).header("X-Key", "${PLACEHOLDER}").build();
  System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
} }`,
  )
}

/** With the environment of a unit: nothing of this host but where its programs are. */
async function inside(machine: 'listed' | 'brokered', command: string[]) {
  const trusted = join(home, `${machine}.pem`)
  const rustup = process.env['RUSTUP_HOME'] ?? join(process.env['HOME'] ?? '', '.rustup')
  const node = dirname(process.execPath)
  const environment = [
    `PATH=${process.env['PATH']}${delimiter}${node}`,
    `HOME=${home}`,
    `NAME=${machine}`,
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
