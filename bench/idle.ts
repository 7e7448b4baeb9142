// `npm run bench:idle`: what units cost that run and do nothing: processor time of a unit with all that works for it, of Berth
// itself, and how soon a call is answered beside them. The peer are as many bare sandboxes of the same program, started by
// hand. Ends with 1 if a unit costs more than twice as much as a bare sandbox, or than a ten thousandth of a core where that
// is more: the sum of what does nothing must be nothing.

import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openCgroups } from '../src/engine/oci/kernel/cgroups.ts'
import { run, runOrThrow } from '../src/lib/process.ts'
import { type Call, clientOf, destroyAll } from './berth.ts'
import { writeBundle } from './bundle.ts'
import { flagsByHand } from './by-hand.ts'
import { percentile, timed } from './figures.ts'
import { cpuSecondsOf, startBerth } from './service.ts'

const AT_ONCE = 4
const SETTLE_MS = 15_000
const CALLS = 200
const PAUSE_MS = 20
const TIMEOUT_MS = 120_000
const REMOVE_TRIES = 100
const MAX_RATIO = 2
/** Of a core. */
const NOTHING = 0.0001

const { values: options } = parseArgs({
  options: {
    units: { type: 'string', default: '50' },
    class: { type: 'string', default: 'gvisor' },
    seconds: { type: 'string', default: '30' },
    'by-hand': { type: 'string', default: '50' },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(`npm run bench:idle -- [--units 50] [--class gvisor] [--seconds 30] [--by-hand 50]

--by-hand N  how many bare sandboxes the peer has; 0 leaves it out, and nothing is compared
BERTH_RUNSC=/path/to/runsc chooses the gVisor of both`)
} else {
  await compare(options.class, Number(options.units), Number(options['by-hand']), Number(options.seconds))
}

async function compare(isolation: string, units: number, byHand: number, seconds: number): Promise<void> {
  const berth = await startBerth(isolation, { BERTH_POOL_GB: '60' })
  const call = clientOf(berth)
  try {
    const [first = ''] = await createMany(call, units)
    await delay(SETTLE_MS)
    const [ofUnits, ofBerth] = await Promise.all([
      coreShare(seconds, () => usedIn(groupOf(berth.pid))),
      coreShare(seconds, () => cpuSecondsOf(berth.pid)),
    ])
    const answers: number[] = []
    for (let asked = 0; asked < CALLS; asked += 1) {
      await timed(answers, () => call('GET', `/v1/units/${first}`))
      await delay(PAUSE_MS)
    }
    const each = ofUnits / units
    console.log(`${units} idle running units, class ${isolation}, over ${seconds} s:`)
    console.log(`  a unit            ${percent(each)} of a core, with its monitor`)
    console.log(`  Berth itself      ${percent(ofBerth - ofUnits)} of a core`)
    console.log(
      `  GET, p50 and p99  ${percentile(answers, 0.5).toFixed(1)} and ${percentile(answers, 0.99).toFixed(1)} ms`,
    )
    console.log(`  memory available  ${availableGb().toFixed(1)} GB`)
    await destroyAll(call)
    if (byHand === 0) return
    const peer = (await bareSandboxes(isolation, berth.rootfs(), byHand, seconds)) / byHand
    console.log(`  a bare sandbox    ${percent(peer)} of a core, of ${byHand} started by hand`)
    if (each > MAX_RATIO * Math.max(peer, NOTHING)) {
      console.log(`A unit costs ${(each / Math.max(peer, NOTHING)).toFixed(1)} times as much: too much.`)
      process.exitCode = 1
    }
  } finally {
    await destroyAll(call).catch(() => {})
    await berth.stop()
  }
}

/** Ids of units, as many as asked; stops with a sentence at the first that is refused. */
async function createMany(call: Call, count: number): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count) {
    const group = Array.from({ length: Math.min(AT_ONCE, count - ids.length) }, async (_, index) => {
      const spec = {
        name: `idle-${ids.length + index}`,
        image: 'berth.local/debian:12',
        cmd: ['sleep', 'infinity'],
        size: 'nano',
        sleep: 'never',
      }
      const made = (await call('POST', '/v1/units', { spec, stack: 'idle' })) as { units: { id: string }[] }
      return made.units[0]?.id ?? ''
    })
    ids.push(...(await Promise.all(group)))
    if (ids.length % 100 < AT_ONCE) console.log(`  ${ids.length} units`)
  }
  return ids
}

/** The control group of an instance, below which all its units and their monitors are. */
function groupOf(supervisor: number): string {
  const children = readFileSync(`/proc/${supervisor}/task/${supervisor}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
  const instances = children.flatMap((pid) => {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const [, instance] = /\/run\/berth\/([a-z0-9]+)\//.exec(command) ?? []
    return instance === undefined ? [] : [`berth-${instance}`]
  })
  const groups = readdirSync(openCgroups('none').main).filter((name) => instances.includes(name))
  if (groups[0] === undefined) throw new Error('The control group of the units was not found.')
  return groups[0]
}

/** Seconds of processor time in a control group and those below it. */
function usedIn(group: string): number {
  const { version, trees } = openCgroups('none')
  if (version === 2) {
    const stat = readFileSync(join(trees['unified'] ?? '', group, 'cpu.stat'), 'utf8')
    return Number(/^usage_usec (\d+)/m.exec(stat)?.[1]) / 1e6
  }
  return Number(readFileSync(join(accounting(trees), group, 'cpuacct.usage'), 'utf8')) / 1e9
}

function accounting(trees: Record<string, string>): string {
  const tree = trees['cpuacct'] ?? trees['cpu,cpuacct'] ?? trees['unified']
  if (tree === undefined) throw new Error('This host counts no processor time of control groups.')
  return tree
}

async function coreShare(seconds: number, used: () => number): Promise<number> {
  const [before, began] = [used(), performance.now()]
  await delay(seconds * 1000)
  return ((used() - before) * 1000) / (performance.now() - began)
}

/** What they use together, of a core. */
async function bareSandboxes(
  isolation: string,
  rootfs: string,
  count: number,
  seconds: number,
): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-idle-'))
  const group = `berth-bench-${process.pid}`
  const place = join(accounting(openCgroups('none').trees), group)
  mkdirSync(place)
  const [bundle, state] = [join(directory, 'bundle'), join(directory, 'state')]
  const program = (...args: string[]) => {
    const script = 'echo $$ >"$1/cgroup.procs"; shift; exec "$@" </dev/null >/dev/null 2>/dev/null'
    const command = [...flagsByHand(isolation), '--root', state, ...args]
    return runOrThrow('sh', ['-c', script, 'sh', place, ...command], { timeoutMs: TIMEOUT_MS })
  }
  const names = Array.from({ length: count }, (_, index) => `idle-${index}`)
  try {
    await writeBundle(bundle, { rootfs, args: ['sleep', 'infinity'] })
    for (const name of names) await program('run', '--detach', '--bundle', bundle, name)
    await delay(SETTLE_MS)
    return await coreShare(seconds, () => usedIn(group))
  } finally {
    // Not by `delete`: it takes seconds in some versions, and fails for one in ten.
    for (let tries = 0; tries < REMOVE_TRIES && endProcesses(place) > 0; tries += 1) await delay(200)
    // A newer runsc leaves a network namespace mounted, which its file servers share.
    await run('umount', [join(state, 'null-netns')], { timeoutMs: TIMEOUT_MS })
    await rm(directory, { recursive: true, force: true })
    rmdirSync(place)
  }
}

/** How many there were. */
function endProcesses(group: string): number {
  const pids = readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
  for (const pid of pids) process.kill(Number(pid), 'SIGKILL')
  return pids.length
}

function availableGb(): number {
  const kb = /^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return Number(kb) / 1024 ** 2
}

function percent(share: number): string {
  return `${(100 * share).toFixed(4)} %`
}
