// The clients that people use in real units of both classes, with all that Berth gives a unit and nothing more: its resolver, its
// redirected ports, its mounted bundle and its variables. The internet, with a nameserver, a registry and an SSH server, is a
// lab's. `npm test` tries what an image of Berth's own has; the deep tier makes an image with all of them.

import type { ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { BrokeredSecret, MachineEgress } from '../../src/engine/egress.ts'
import { type IsolationClass, isolationClasses, type MachineRef } from '../../src/engine/engine.ts'
import { bundleVariables } from '../../src/lib/egress/trust.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { makeClientsImage } from '../support/clients-image.ts'
import type { BrokerWorld, Sent } from '../support/network-lab/broker-world.ts'
import { CLIENTS_HOST, chromiumCommand, clients, homeFiles } from '../support/network-lab/clients.ts'
import {
  DNS_PORT,
  EGRESS_GID,
  EGRESS_PORTS,
  type Lab,
  NEIGHBOUR,
  openLab,
  PUBLIC,
} from '../support/network-lab/lab.ts'
import { PLACEHOLDER } from '../support/network-lab/registries.ts'
import { SSH_REPOSITORY, startSshServer } from '../support/network-lab/ssh-server.ts'
import { startEgressIn } from '../support/network-lab/start-egress.ts'
import { startIn } from '../support/network-lab/start-in.ts'
import { isDeep } from '../support/part-of.ts'
import { openEngineProcess } from './engine-process.ts'
import { type HostEngine, IMAGES_DIR, openHostEngine } from './host-engine.ts'

const SMALL_IMAGE = 'berth.local/python:3.11'
const inSmallImage = ['curl', 'pip', 'python3']
const GIT_HOST = 'git.example.com'
const BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
const VALUE = 'sk-the-real-one'

const secret: BrokeredSecret = { name: 'KEY', placeholder: PLACEHOLDER, value: VALUE, hosts: [CLIENTS_HOST] }
const rules = (...secrets: BrokeredSecret[]): MachineEgress => ({
  mode: 'listed',
  allow: [CLIENTS_HOST, `${GIT_HOST}:22`],
  siblings: 'none',
  stack: null,
  secrets,
})

let lab: Lab
let host: HostEngine
let directory: string
let image: { digest: string; rootfs: string }
let roots: string
const children: ChildProcess[] = []
const sent: Sent[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'clients-'))
  lab = await openLab()
  const world: BrokerWorld = { nameserver: NEIGHBOUR, address: PUBLIC, certified: [CLIENTS_HOST] }
  const [internet, first] = await startIn(lab.outside, 'broker-world', world)
  roots = (first as { roots: string }).roots
  internet.on('message', (message: { sent?: Sent }) => message.sent && sent.push(message.sent))
  const egress = { ports: EGRESS_PORTS, gid: EGRESS_GID, sockets: lab.sockets, onNeeded: () => {} }
  host = await openHostEngine({ instance: lab.instance, resolverPort: DNS_PORT, egress }, async (options) =>
    openEngineProcess(options, directory, { network: lab.host }),
  )
  children.push(internet, await startEgressIn(lab, { stateDir: directory, roots }))
  image = isDeep ? await clientsImage() : { ...(await host.engine().pull(SMALL_IMAGE)), rootfs: '' }
}, 1_800_000)
afterAll(async () => {
  await host?.close()
  for (const child of children) child.kill('SIGKILL')
  await lab?.close()
  await rm(directory, { recursive: true })
}, 120_000)
beforeEach(() => {
  sent.length = 0
})

describe.each(isolationClasses)('in a unit of class %s', (isolation) => {
  let listed: MachineRef
  let brokered: MachineRef
  beforeAll(async () => {
    listed = await started(isolation)
    brokered = await started(isolation, secret)
    // Whose certificates are signed by an authority of the test: with a secret the unit trusts Berth's, and with that its host.
    await said(listed, ['sh', '-c', `cat >>${BUNDLE}`], Buffer.from(roots))
  })
  afterAll(async () => {
    for (const { id } of [listed, brokered]) await host.engine().destroy(id)
  })

  const here = clients.filter(({ program }) => isDeep || inSmallImage.includes(program))
  describe.each(here)('$name', ({ command, prints, header, sends }) => {
    it('reaches a listed host, which the unit verifies itself', async () => {
      expect(await said(listed, command)).toContain(prints)
      expect(sent.map((each) => each[header]).join()).toContain(sends(PLACEHOLDER))
    })

    it('has the value put into what it sends to the host of a secret, by what Berth mounted', async () => {
      expect(await said(brokered, command)).toContain(prints)
      expect(sent.at(-1)?.[header]).toBe(sends(VALUE))
      expect(JSON.stringify(sent)).not.toContain(PLACEHOLDER)
    })

    // Those whose host is in a file ask for it in any case.
    const isNamed = command.join(' ').includes(CLIENTS_HOST)
    it.skipIf(!isNamed)('reaches no other host', async () => {
      const elsewhere = command.map((word) => word.replaceAll(CLIENTS_HOST, 'other.example.com'))
      expect(await said(brokered, elsewhere)).not.toContain(prints)
      expect(sent.filter((each) => each.host !== CLIENTS_HOST)).toEqual([])
    })
  })

  it.skipIf(!isDeep)(
    'a browser sends the value from a page’s own script, once it has the authority',
    async () => {
      const database = 'sql:/root/.pki/nssdb'
      const authority = `awk '/BEGIN/ {c = ""} {c = c $0 "\\n"} END {printf "%s", c}' "$SSL_CERT_FILE"`
      const trust = `mkdir -p /root/.pki/nssdb && certutil -N -d ${database} --empty-password && ${authority} | certutil -A -d ${database} -n berth -t C,, -a`
      await said(brokered, ['sh', '-euc', trust])
      const page = [...chromiumCommand, '--dump-dom', `https://${CLIENTS_HOST}/page`]
      expect(await said(brokered, page)).toContain('1.2.3')
      expect(sent.map(({ url, key }) => [url, key])).toContainEqual(['/thing', VALUE])
      expect(sent.map(({ key }) => key)).not.toContain(PLACEHOLDER)
    },
  )

  it.skipIf(!isDeep)('git reaches a listed name over SSH, and no other name at that port', async () => {
    await runOrThrow('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(directory, isolation)], {
      timeoutMs: 10_000,
    })
    const [key, publicKey] = await Promise.all([
      readFile(join(directory, isolation)),
      readFile(join(directory, `${isolation}.pub`), 'utf8'),
    ])
    const given = { rootfs: image.rootfs, publicKey: publicKey.trim(), address: PUBLIC }
    const server = await startSshServer(lab.outside, given)
    try {
      await said(listed, ['sh', '-c', 'umask 77 && cat >/root/key'], key)
      const ssh = 'ssh -i /root/key -o StrictHostKeyChecking=accept-new -o ConnectTimeout=10'
      const from = (name: string) =>
        said(listed, [
          'env',
          `GIT_SSH_COMMAND=${ssh}`,
          'git',
          'ls-remote',
          `ssh://root@${name}${SSH_REPOSITORY}`,
        ])
      expect(await from(GIT_HOST)).toContain('refs/heads/main')
      expect(await from('other.example.com')).toMatch(/Could not resolve hostname/i)
    } finally {
      await server.close()
    }
  })
})

async function clientsImage() {
  const { image: made, rootfs } = await makeClientsImage(IMAGES_DIR)
  return { digest: made.digest, rootfs }
}

let made = 0
async function started(isolation: IsolationClass, ...secrets: BrokeredSecret[]): Promise<MachineRef> {
  const id = `unit_client${(made += 1)}`
  const size = { cpus: 2, memoryMb: 2048, pids: 1024, diskGb: 2 }
  const spec = { id, imageDigest: image.digest, isolation, size, volume: null, networkGroup: 1 }
  await host.engine().create(spec)
  const ref = { id, generation: 1 }
  // Without a secret Berth says nothing of certificates, and several clients do not ask the system.
  const trusting = secrets.length > 0 ? [] : bundleVariables
  const env = Object.fromEntries([['HOME', '/root'], ...trusting.map((name) => [name, BUNDLE])])
  const files = Object.entries(homeFiles).map(([path, content]) => ({
    path: `/root/${path}`,
    content: Buffer.from(content),
  }))
  const command = { entrypoint: ['sleep', 'infinity'], cmd: [], searchDomain: 'stack.internal' }
  await host.engine().start(ref, { ...command, hostname: 'unit', env, files, egress: rules(...secrets) })
  return ref
}

/** All that a command printed. */
async function said(ref: MachineRef, argv: string[], stdin: Buffer | null = null): Promise<string> {
  let text = ''
  const request = { argv, stdin, timeoutMs: 120_000 }
  await host.engine().exec(ref, request, ({ data }) => void (text += data.toString()))
  return text
}
