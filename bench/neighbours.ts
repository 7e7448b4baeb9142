// `npm run bench:neighbours`: measures a team's latency while another team, one free account, attacks the service. Before
// each attack the same is measured without one; each attack is compared with all such measurements so far. Rates and limits
// are the defaults. The first row is not an attack but busy loops in units, which are allowed: it shows how much two teams on one
// host slow each other down anyway. The attacker is a separate process at the lowest priority: its work would be done on another machine.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { loadConfig } from '../src/config.ts'
import { createAccount } from '../src/domain/accounts/create.ts'
import { createKey } from '../src/domain/credentials/keys.ts'
import { unrestrictedPolicy } from '../src/domain/credentials/unrestricted-policy.ts'
import type { Plan } from '../src/store/teams.ts'
import { runBesideBerth } from '../src/operator/beside-berth.ts'
import { serveRegistry, testImage } from '../test/support/registry.ts'
import { tar, type TarEntry } from '../test/support/tar.ts'
import type { Attack } from './attacks.ts'
import { type Call, clientOf, destroyAll } from './berth.ts'
import { type Figures, percentile, timed } from './figures.ts'
import { publish } from './gateway.ts'
import { type Berth, startBerth } from './service.ts'

const IMAGE = 'berth.local/debian:12'
/** Rates count by key. One more cleans up, since an attack may have used up the others'. */
const KEYS = 8
const DEEP = 1500
/** Until what an attack has set off is over. */
const AFTERWARDS_MS = 3000
/** One round of so many makes a unit of an image that is not on the host yet. */
const ROUNDS_A_PULL = 4
const defaultRates = {
  BERTH_RATE_REQUESTS: '300',
  BERTH_RATE_CREATIONS: '30',
  BERTH_RATE_EXECS: '120',
  BERTH_TEAM_COMMANDS: '64',
}

let freshImages = 0

const allAttacks = [
  'busy units',
  'fill the disk',
  'silent connections',
  'read logs of the future',
  'stalled pulls',
  'deep layers',
  'print to the log',
  'hold output',
  'long arguments',
]

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '40' },
    class: { type: 'string', default: 'runc' },
    only: { type: 'string', default: allAttacks.join(',') },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(
    `npm run bench:neighbours -- [--rounds 40] [--class runc|gvisor] [--only "${allAttacks.join(',')}"]`,
  )
} else {
  await runBenchmark(Number(options.rounds), options.class, options.only.split(','))
}

async function runBenchmark(rounds: number, isolation: string, names: string[]): Promise<void> {
  const registry = await serveRegistry()
  registry.intercept = ({ url = '' }, response) => {
    const [, repository = ''] = /^\/v2\/(.+)\/(?:manifests|blobs)\//.exec(url) ?? []
    if (!repository.startsWith('stalled/')) return false
    // The headers arrive, and nothing else ever does.
    response.writeHead(200, { 'content-length': '1000000' }).flushHeaders()
    return true
  }
  const deep = tar(deepTree())
  for (let n = 0; n < 500; n += 1) registry.add(`deep/image-${n}`, '1', testImage([deep, tarOfNumber(n)]))
  const berth = await startBerth(isolation, {
    ...defaultRates,
    BERTH_REGISTRY_MIRRORS: `docker.io=${registry.address}`,
  })
  const program = await tarOfProgram(berth.rootfs())
  const images = names.length * 2 * Math.ceil(rounds / ROUNDS_A_PULL) + 1
  for (let n = 0; n < images; n += 1)
    registry.add(`fresh/image-${n}`, '1', testImage([program, tarOfNumber(n)]))
  const accounts: Account[] = []
  const lines: string[][] = []
  try {
    const victim = await account(berth, 'victim', 'team')
    accounts.push(victim)
    const victimCall = inTurns(berth, victim.keys)
    const site = await publish(victimCall, { image: 'berth.local/nginx:1.22', cmd: ['nginx'], ports: [80] })
    await measureVictim(berth, victimCall, site.url, 3)
    const quiet: Measured = { figures: {}, failed: {} }
    for (const [index, name] of names.entries()) {
      const now = await measureVictim(
        berth,
        victimCall,
        site.url,
        index === 0 ? rounds : Math.ceil(rounds / 2),
      )
      for (const [call, samples] of Object.entries(now.figures)) (quiet.figures[call] ??= []).push(...samples)
      const attacker = await account(berth, `attacker ${index}`, 'hobby')
      accounts.push(attacker)
      const attack = await beginAttack(name, { baseUrl: berth.baseUrl, keys: attacker.keys, image: IMAGE })
      const attacked = await measureVictim(berth, victimCall, site.url, rounds)
      await attack.stop()
      await destroyAll(clientOf({ ...berth, apiKey: attacker.ownKey })).catch(console.error)
      for (const line of linesOf(name, quiet, attacked)) {
        lines.push(line)
        console.log(line.join(' | '))
      }
      await delay(AFTERWARDS_MS)
    }
    await victimCall('DELETE', `/v1/units/${site.id}`)
  } finally {
    // Units outlive Berth.
    for (const each of accounts)
      await destroyAll(clientOf({ ...berth, apiKey: each.ownKey })).catch(console.error)
    await berth.stop().catch(console.error)
    await registry.close()
  }
  const head = ['attack', 'call', 'quiet, p50 / p95 ms', 'attacked, p50 / p95 ms', 'ratio of p95', 'failed']
  console.log(
    `\n${[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}`,
  )
}

type Measured = { figures: Figures; failed: Record<string, string[]> }

/** Create, exec, visit and destroy in turns. A call that fails is told, not thrown. */
async function measureVictim(berth: Berth, call: Call, url: string, rounds: number): Promise<Measured> {
  const figures: Figures = { create: [], 'create with a pull': [], exec: [], visit: [], destroy: [] }
  const failed: Record<string, string[]> = {}
  const attempt = async <T>(name: string, action: () => Promise<T>): Promise<T | null> => {
    try {
      return await timed(figures[name] ?? [], action)
    } catch (error) {
      ;(failed[name] ??= []).push(String(error).slice(0, 200))
      return null
    }
  }
  for (let round = 0; round < rounds; round += 1) {
    const pulls = round % ROUNDS_A_PULL === 0
    const image = pulls ? `docker.io/fresh/image-${freshImages++}:1` : IMAGE
    const spec = { name: 'victim', image, cmd: ['/usr/bin/sleep', 'infinity'] }
    const made = (await attempt(pulls ? 'create with a pull' : 'create', () =>
      call('POST', '/v1/units', { spec }),
    )) as { units: { id: string }[] } | null
    const id = made?.units[0]?.id
    for (let again = 0; again < 3; again += 1) {
      if (id)
        await attempt('exec', () => call('POST', `/v1/units/${id}/exec`, { cmd: ['/usr/bin/sleep', '0'] }))
      await attempt('visit', () => visit(berth, url))
    }
    if (id) await attempt('destroy', () => call('DELETE', `/v1/units/${id}`))
  }
  return { figures, failed }
}

async function visit({ gatewayHttp }: Berth, url: string): Promise<void> {
  const [host, port] = gatewayHttp.split(':')
  const asked = request({ host, port, path: '/', headers: { host: new URL(url).host }, agent: false })
  asked.end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  if (answer.statusCode !== 200) throw new Error(`a visit was answered with ${answer.statusCode}`)
}

function linesOf(attack: string, quiet: Measured, attacked: Measured): string[][] {
  const cell = (samples: number[]) =>
    `${percentile(samples, 0.5).toFixed(0)} / ${percentile(samples, 0.95).toFixed(0)}`
  return Object.entries(attacked.figures).map(([call, samples]) => {
    const before = quiet.figures[call] ?? []
    const ratio = percentile(samples, 0.95) / percentile(before, 0.95)
    const failures = attacked.failed[call] ?? []
    const said = failures.length === 0 ? '0' : `${failures.length}: ${failures[0]}`
    return [attack, call, cell(before), cell(samples), ratio.toFixed(2), said]
  })
}

async function beginAttack(name: string, attack: Attack): Promise<{ stop(): Promise<void> }> {
  const child = spawn('nice', ['-n', '19', process.execPath, 'bench/attacks.ts', name], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '', ATTACK: JSON.stringify(attack) },
  })
  const ended = once(child, 'exit')
  await Promise.race([once(child.stdout, 'data'), ended])
  if (child.exitCode !== null) throw new Error(`The attack "${name}" ended before it began.`)
  return {
    stop: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

type Account = { keys: string[]; ownKey: string }

async function account(berth: Berth, name: string, plan: Plan): Promise<Account> {
  const config = loadConfig({ BERTH_DATA_DIR: berth.dataDir, BERTH_LOG_LEVEL: 'warn' })
  return await runBesideBerth(config, async ({ db }) => {
    const createdAt = new Date()
    const { userId, teamId } = await createAccount(db, {
      email: `${name.replace(' ', '-')}@example.test`,
      name,
      admin: false,
      plan,
      paysAsItGoes: plan === 'team',
      freeCreditsCents: 500,
      createdAt,
    })
    const newKey = async (keyName: string) => {
      const input = { teamId, name: keyName, policy: unrestrictedPolicy, createdBy: userId, createdAt }
      return (await createKey(db, input)).secret
    }
    const keys: string[] = []
    for (let n = 0; n < KEYS; n += 1) keys.push(await newKey(`key ${n}`))
    return { keys, ownKey: await newKey('own') }
  })
}

function inTurns(berth: Berth, keys: string[]): Call {
  const clients = keys.map((apiKey) => clientOf({ ...berth, apiKey }))
  let calls = 0
  return async (method, path, body) => {
    const client = clients[calls++ % clients.length]
    if (client === undefined) throw new Error('There is no key.')
    return await client(method, path, body)
  }
}

function deepTree(): TarEntry[] {
  const names: TarEntry[] = []
  let path = ''
  for (let depth = 0; depth < DEEP; depth += 1) {
    path = path === '' ? 'd' : `${path}/d`
    names.push({ name: 'long', type: 'directory', pax: { path } })
  }
  return names
}

/** A layer that no other image has. */
function tarOfNumber(n: number): Buffer {
  return tar([{ name: 'number', content: String(n) }])
}

/** A layer with one program and what it is linked with, out of an image that is on the host. */
async function tarOfProgram(rootfs: string): Promise<Buffer> {
  const arm = process.arch === 'arm64'
  const libraries = `usr/lib/${arm ? 'aarch64' : 'x86_64'}-linux-gnu`
  const linker = arm ? 'ld-linux-aarch64.so.1' : 'ld-linux-x86-64.so.2'
  const file = async (name: string, from: string) => {
    return { name, mode: 0o755, content: await readFile(join(rootfs, from)) }
  }
  return tar([
    ...['usr', 'usr/bin', 'lib', 'lib64'].map((name) => ({ name })),
    await file('usr/bin/sleep', 'usr/bin/sleep'),
    await file(`${arm ? 'lib' : 'lib64'}/${linker}`, `${libraries}/${linker}`),
    await file('lib/libc.so.6', `${libraries}/libc.so.6`),
  ])
}
