// The house rules as a function of the source text, so that the rules themselves can be tested on made-up
// sources (tidy.test.ts). Each fault is one line: the file, what is wrong, and what to do.

import { dirname, normalize } from 'node:path'
import { vocabularyFaults } from './vocabulary.ts'

/** Path from the project's root → text. */
export type Sources = Map<string, string>

/**
 * Layers of src/, each with those it may import from (its own aside). `engine` is the interface; what is
 * behind it is seen by the processes that start it, and by nothing of the rules.
 */
const layers = {
  lib: [],
  config: ['lib'],
  contract: ['lib'],
  store: ['lib', 'contract'],
  integrations: ['lib'],
  certificates: ['lib', 'config'],
  dns: ['lib'],
  kubernetes: ['lib'],
  egress: ['lib', 'certificates'],
  engine: ['lib', 'contract'],
  'engine/behind': ['lib', 'contract', 'engine'],
  app: ['lib', 'config', 'contract', 'store', 'integrations', 'engine'],
  domain: ['lib', 'config', 'contract', 'store', 'integrations', 'engine', 'app'],
  api: ['lib', 'config', 'contract', 'app', 'domain'],
  agents: ['lib', 'contract', 'app', 'domain'],
  gateway: ['lib', 'config', 'contract', 'store', 'certificates', 'app', 'domain'],
  jobs: ['lib', 'app', 'domain'],
  metrics: ['lib', 'config', 'contract', 'store', 'engine', 'app'],
  doctor: ['lib', 'config', 'certificates', 'engine', 'engine/behind'],
  processes: [
    'lib',
    'config',
    'store',
    'integrations',
    'certificates',
    'dns',
    'egress',
    'engine',
    'engine/behind',
    'app',
    'domain',
    'api',
    'agents',
    'gateway',
    'jobs',
    'metrics',
  ],
  supervisor: [
    'lib',
    'config',
    'store',
    'certificates',
    'kubernetes',
    'domain',
    'engine/behind',
    'doctor',
    'processes',
  ],
  operator: [
    'lib',
    'config',
    'store',
    'certificates',
    'domain',
    'engine',
    'engine/behind',
    'processes',
    'supervisor',
    'doctor',
  ],
  main: ['lib', 'config', 'doctor', 'processes', 'supervisor', 'operator'],
} as const satisfies Record<string, readonly string[]>

type Layer = keyof typeof layers

/** What the domain sees of the engine (design 3). */
const engineInterface = ['egress', 'engine', 'errors', 'exec', 'fleet', 'metrics', 'process', 'terminal'].map(
  (name) => `src/engine/${name}.ts`,
)

/**
 * The floors of a folder: each of its folders, and each file that has a place of its own, imports from those before it alone.
 * A file that is not named may import any, and be imported by any.
 */
const floors: Record<string, readonly string[]> = {
  'src/domain': [
    'transactions',
    'time',
    'hosts',
    'mail',
    'allowances',
    'credits',
    'accounts',
    'credentials',
    'providers',
    'authorization',
    'audit',
    'idempotency',
    'policies',
    'egress',
    'secrets',
    'billing',
    'teams',
    'payments',
    'invites',
    'members',
    'agents',
    'oauth',
    'me',
    'endpoints',
    'support',
    'units',
    'hosted-agents',
    'stacks',
    'forks',
    'events',
    'recipes',
  ],
  'src/domain/units': ['model', 'lifecycle', 'admission', 'activity'],
  'src/api': [
    'http',
    'route.ts',
    'operation',
    'operation-docs',
    'routes',
    'web',
    'downloads',
    'oauth',
    'mcp',
    'docs',
    'e2b',
  ],
  'src/gateway': [
    'route.ts',
    'peer.ts',
    'kept-connections.ts',
    'server-link',
    'routing',
    'handover',
    'sessions',
    'workers',
    'certificates',
    'tcp',
    'http',
    'listen',
  ],
  'src/engine/oci': [
    'failpoints.ts',
    'paths.ts',
    'traits.ts',
    'kernel',
    'runsc-build',
    'network',
    'records',
    'images',
    'storage',
    'relay',
    'runtime',
    'machine',
    'logs',
    'exec',
    'watcher',
    'checkpoint',
    'probes',
    'processes',
    'warm-pool',
    'lifecycle',
    'snapshot',
    'host.ts',
  ],
}

/** Imports against an arrow that are wanted, with the reason. */
const exceptions = new Map([
  ['src/api/http/errors.ts → src/store/outage.ts', 'a database that is away is an answer of its own'],
  [
    'src/app.ts → src/domain/units/activity/unit-activity.ts',
    'App keeps what the domain knows of the use of units',
  ],
  [
    'src/engine/oci/machine/context.ts → src/engine/oci/processes/held-process.ts',
    'the context has what is known of background processes, as a type alone',
  ],
  [
    'src/engine/oci/machine/context.ts → src/engine/oci/processes/pace.ts',
    'the context has the pace at which their output is read, as a type alone',
  ],
])

/** What the programs for people may know of the service: they import nothing. */
const dashboardMayImport = [
  'src/contract/states.ts',
  'src/contract/audit-sentences.ts',
  'src/contract/limits.ts',
  'src/lib/money.ts',
  'src/lib/byte-size.ts',
  'src/lib/key-spelling.ts',
  'src/lib/time-words.ts',
]

const longest = { src: 300, packages: 400, test: 500 } as const

export function findFaults(sources: Sources): string[] {
  const imports = importsOf(sources, anyImport)
  const inSources = [...imports].filter(([from]) => /^(?:src|packages\/[^/]+\/src)\//.test(from))
  return [
    ...[...imports].flatMap(([from, targets]) => targets.flatMap((to) => arrowFault(from, to))),
    ...findCycles(new Map([...importsOf(sources, loadedImport), ...inSources])),
    ...[...sources].flatMap(([path, text]) => textFaults(path, text)),
  ]
}

// Who imports whom

/** Types included: files of the program that need each other's types cannot be read one after the other. */
const anyImport = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g
/** What is there when the program runs. */
const loadedImport = /^(?:import|export)(?! type)[^']*'(\.{1,2}\/[^']+)'/gm

function importsOf(sources: Sources, pattern: RegExp): Map<string, string[]> {
  const imports = new Map<string, string[]>()
  for (const [path, text] of sources) {
    const targets = [...text.matchAll(pattern)]
    imports.set(path, [...new Set(targets.map(([, target = '']) => normalize(`${dirname(path)}/${target}`)))])
  }
  return imports
}

function arrowFault(from: string, to: string): string[] {
  if (from.startsWith('packages/dashboard/') && to.startsWith('src/') && !dashboardMayImport.includes(to))
    return [
      `${from}: imports ${to}; the dashboard is a client, and sees ${dashboardMayImport.join(' and ')} only`,
    ]
  // Tests look at whatever they test.
  if (!from.startsWith('src/') || from.endsWith('.test.ts')) return []
  // The server runs the same controller as the CLI, as a client of its own API.
  if (from.startsWith('src/agents/') && /^packages\/(?:agents|sdk)\/src\//.test(to)) return []
  if (!to.startsWith('src/')) return [`${from}: imports ${to}, and src is to stand by itself`]
  if (exceptions.has(`${from} → ${to}`)) return []
  const [mine, theirs] = [layerOf(from), layerOf(to)]
  if (mine === null || theirs === null)
    return [`${from}: ${to} or itself is in no layer; see test/support/tidy.ts`]
  if (mine !== theirs) {
    const allowed: readonly Layer[] = layers[mine]
    if (!allowed.includes(theirs)) return [`${from}: ${mine} may not import ${theirs} (${to})`]
  }
  if (mine === 'domain' && theirs === 'engine' && !engineInterface.includes(to)) {
    return [`${from}: the domain sees of the engine ${engineInterface.join(' and ')} only, not ${to}`]
  }
  return Object.keys(floors).flatMap((folder) => floorFault(folder, from, to))
}

function floorFault(folder: string, from: string, to: string): string[] {
  const order = floors[folder] ?? []
  if (![from, to].every((path) => path.startsWith(`${folder}/`))) return []
  const [mine = '', theirs = ''] = [from, to].map((path) => path.slice(folder.length + 1).split('/')[0] ?? '')
  // The domain is nothing but folders with a place.
  if (folder === 'src/domain' && !(order.includes(mine) && order.includes(theirs)))
    return [`${from}: a folder of the domain has its place in test/support/tidy.ts`]
  const [own, other] = [mine, theirs].map((name) => order.indexOf(name))
  if (own === undefined || other === undefined || own < 0 || other <= own) return []
  return [`${from}: ${folder}/${mine} comes before ${folder}/${theirs} and may not import it (${to})`]
}

function layerOf(path: string): Layer | null {
  const [, first = '', second = ''] = path.split('/')
  const name = first.replace(/\.ts$/, '')
  if (name === 'engine') return second === 'oci' ? 'engine/behind' : 'engine'
  return name in layers ? (name as Layer) : null
}

function findCycles(imports: Map<string, string[]>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) {
      found.push(
        `${path}: imports itself by way of ${[...trail.slice(trail.indexOf(path) + 1), path].join(' → ')}`,
      )
      return
    }
    if (done.has(path)) return
    for (const target of imports.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
  return found
}

// What a file says

function kindOf(path: string): keyof typeof longest {
  if (path.endsWith('.test.ts')) return 'test'
  if (path.startsWith('src/')) return 'src'
  return path.startsWith('packages/') ? 'packages' : 'test'
}

function textFaults(path: string, text: string): string[] {
  const faults: string[] = []
  const limit = longest[kindOf(path)]
  const lines = text.split('\n').length - 1
  if (lines > limit)
    faults.push(`${path}: ${lines} lines, more than ${limit}; cut it where its subjects part`)
  for (const { pattern, where, advice } of bannedText) {
    if (where(path) && pattern.test(text)) faults.push(`${path}: ${advice}`)
  }
  if (path.endsWith('.test.ts')) faults.push(...testNameFaults(path, text))
  if (notTidy(path)) faults.push(...vocabularyFaults(path, text))
  return faults
}

const configFile = 'src/config.ts'
const inSrc = (path: string) => path.startsWith('src/') && !path.endsWith('.test.ts')
// This file and its test name what they forbid.
const notTidy = (path: string) => !/tidy|vocabulary/.test(path)

// What lies in the tree of a unit or an image is a stranger's, links to elsewhere included.
const treeModule = 'src/engine/oci/kernel/unit-tree.ts'
const jailFile = 'src/engine/oci/images/jail.ts'
// Within a jail there is nothing a link could lead to.
const inJail = (path: string) => path.startsWith('src/engine/oci/images/jailed/')

const transactionsFile = 'src/domain/transactions/transactions.ts'
const ownTransactions = [
  transactionsFile,
  // Changes the time over, for which all others wait.
  'src/domain/time/clock-jumps.ts',
  // Runs before there is a service whose time could change.
  'src/domain/credentials/first-account.ts',
]

const retryFile = 'src/domain/units/lifecycle/retry-on-conflict.ts'

const bannedText: { pattern: RegExp; where: (path: string) => boolean; advice: string }[] = [
  {
    pattern: /\bprocess\.env\b/,
    where: (path) => inSrc(path) && path !== configFile,
    advice: `reads process.env, which ${configFile} alone does`,
  },
  {
    pattern: /^export default\b/m,
    where: (path) => !path.endsWith('.config.ts') && notTidy(path),
    advice: 'has a default export; give it a name',
  },
  {
    pattern: /\b(TODO|FIXME|XXX)\b/,
    where: notTidy,
    advice: 'has an unfinished spot; finish it, or make an issue of it',
  },
  {
    pattern: /\bconsole\.\w/,
    where: inSrc,
    advice: 'writes to the console; use the log, or lib/terminal.ts',
  },
  {
    pattern: /\bexec(Sync)?\(\s*[`'"]|shell: true/,
    where: inSrc,
    advice: 'passes a command through a shell; use an array of arguments',
  },
  {
    // A path below one of these, or one that is opened there.
    pattern:
      /\b(?:join|resolve)\(\s*(?:\w+\.)*(?:rootfs|upper|volume|volumeDir)\b\s*,|\$\{(?:\w+\.)*(?:rootfs|upper|volume|volumeDir)\}\/|\bopenat2|\bopenInRoot\b/,
    where: (path) =>
      path.startsWith('src/engine/') &&
      inSrc(path) &&
      !inJail(path) &&
      ![treeModule, 'src/engine/oci/kernel/syscalls.ts'].includes(path),
    advice: `makes a path in the tree of a unit or an image, which ${treeModule} alone does`,
  },
  {
    pattern: /'(?:bwrap|chroot|umoci|tar|rsync|cp)'/,
    // A backup copies images whole: it follows no link in them and reads nothing of what they say. And what a volume begins with
    // is no stranger's (decisions/builtin-images.md).
    where: (path) =>
      inSrc(path) &&
      // What it says is for programs inside the units of an image.
      path !== 'src/engine/oci/images/builtin-images.ts' &&
      !path.startsWith('src/doctor/') &&
      !inJail(path) &&
      ![jailFile, 'src/operator/backup.ts', 'src/engine/oci/storage/volume-data.ts'].includes(path),
    advice: `starts a program on strangers' files, or a jail for it, which ${jailFile} alone does`,
  },
  {
    pattern: /\.transaction\(\)/,
    where: (path) => path.startsWith('src/domain/') && inSrc(path) && !ownTransactions.includes(path),
    advice: `begins a transaction of its own, and ${transactionsFile} keeps the time and the team's lock for all of them`,
  },
  {
    // A loop that counts its attempts.
    pattern: /\battempts?\s*(?:<|-=|\+=|\+\+)|\bATTEMPTS\b/,
    where: (path) => path.startsWith('src/domain/') && inSrc(path) && path !== retryFile,
    advice: `counts attempts of its own, and ${retryFile} does so for all of them`,
  },
  {
    pattern: /\b(describe|it|test)\.only\b/,
    where: notTidy,
    advice: 'runs one test alone',
  },
]

/**
 * A test is named by what it claims: 'a wrong key is refused', neither 'should refuse' nor 'Refusal'. The title names its
 * subject, so that it can be understood without the file.
 */
function testNameFaults(path: string, text: string): string[] {
  const names = [...text.matchAll(/^\s*(?:it|test)(?:\.\w+\([^)]*\))?\(\s*'((?:[^'\\]|\\.)+)'/gm)]
  return (
    names
      .map(([, name = '']) => name)
      // A row of a table brings its own name.
      .filter(
        (name) => /^should\b/i.test(name) || !/[ %]/.test(name) || /\b(?:nobody|somebody|anew)\b/i.test(name),
      )
      .map((name) => `${path}: the test "${name}" is not named as a plain claim`)
  )
}
