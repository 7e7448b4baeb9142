// The schemas of processes, directories, images, hosts and certificates in the engine's protocol (protocol.ts).

import { z } from 'zod'
import { limits } from '../../contract/limits.ts'
import { canonicalEgressEntry, formatEgressEntry, parseDeniedRange } from '../../lib/egress/entry.ts'
import { egressModes, siblingScopes } from '../../lib/egress/rules.ts'
import { isSecretPath } from '../../lib/egress/secret-requests.ts'
import { brokeredLimits, isBrokeredHost, isBrokeredValue, isPlaceholder } from '../../lib/egress/secrets.ts'
import { SEEN_AT_ONCE, seenLine } from '../../lib/egress/seen.ts'
import { PULL_LINE_LENGTH, PULL_LINES, pullStages } from '../pull-progress.ts'
import { MAX_CERTIFICATE_BYTES, MAX_REFUSAL_LENGTH, MAX_RENEWAL_REQUEST_BYTES } from '../renewal.ts'
import { terminalSignals } from '../terminal.ts'
import { bytes, date, env, id, noNul } from './fields.ts'

export const processEnv = env.refine((given) => Object.keys(given).length <= limits.envEntries)
export const cwd = noNul(limits.pathLength).nullable()

/** A name or a number of the machine's `/etc/passwd`. */
export const machineUser = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/)

export const processRequest = z.strictObject({
  id,
  argv: z.array(noNul(limits.execArgvItemBytes)).min(1).max(limits.execArgvItems),
  /** Kept, and told again with each list. */
  shown: z
    .array(noNul(limits.processShownLength))
    .refine((items) => items.reduce((sum, item) => sum + item.length, 0) <= limits.processShownLength),
  env: processEnv,
  cwd,
  stdin: bytes(limits.processStdinBytes).nullable(),
  takesInput: z.boolean().optional(),
  keepsAwake: z.boolean(),
  tag: noNul(limits.processTagLength).optional(),
  user: machineUser.optional(),
})

export const machineProcess = z.object({
  id: z.string(),
  shown: z.array(z.string()),
  cwd: z.string().nullable(),
  keepsAwake: z.boolean(),
  tag: z.string().nullable().default(null),
  takesInput: z.boolean().default(false),
  awakeUntil: date.nullable().default(null),
  state: z.enum(['running', 'exited', 'lost']),
  exitCode: z.number().nullable(),
  pid: z.number().nullable(),
  startedAt: date,
  endedAt: date.nullable(),
  output: z.object({ from: z.number(), to: z.number() }),
})

export const endedProcess = z.object({ machine: z.string(), process: machineProcess })

export const machineTask = z.object({
  pid: z.number(),
  parentPid: z.number(),
  groupId: z.number(),
  uid: z.number(),
  owner: z.string().nullable(),
  state: z.string(),
  argv: z.array(z.string()),
})

export const processOutput = z.object({
  stream: z.enum(['stdout', 'stderr']),
  data: bytes(limits.processOutputBytes),
  end: z.number(),
})

/** Far more than the contract allows. */
const EGRESS_ENTRIES = 1024

const canonical = (written: (text: string) => string) =>
  z
    .string()
    .max(512)
    .refine((text) => {
      try {
        return written(text) === text
      } catch {
        return false
      }
    })
const egressEntry = canonical(canonicalEgressEntry)
const deniedRange = canonical((text) => formatEgressEntry(parseDeniedRange(text)))

const brokeredSecret = z.strictObject({
  name: z.string().min(1).max(brokeredLimits.nameLength),
  placeholder: z.string().refine(isPlaceholder),
  value: z.string().refine(isBrokeredValue),
  hosts: z.array(z.string().max(255).refine(isBrokeredHost)).min(1).max(brokeredLimits.hosts),
  // An engine that does not know these refuses a secret that has them.
  methods: z
    .array(z.string().regex(/^[A-Z]{3,7}$/))
    .min(1)
    .exactOptional(),
  paths: z
    .array(z.string().max(brokeredLimits.pathLength).refine(isSecretPath))
    .min(1)
    .max(brokeredLimits.paths)
    .exactOptional(),
})

export const machineEgress = z.strictObject({
  mode: z.enum(egressModes),
  allow: z.array(egressEntry).max(EGRESS_ENTRIES),
  // An engine that does not know these refuses rules that have them.
  deny: z.array(deniedRange).min(1).max(EGRESS_ENTRIES).optional(),
  siblings: z.enum(siblingScopes),
  stack: z.string().min(1).max(64).nullable(),
  secrets: z.array(brokeredSecret).max(brokeredLimits.secrets).default([]),
})

const size = z.strictObject({
  columns: z.int().min(1).max(limits.terminalSide),
  rows: z.int().min(1).max(limits.terminalSide),
})

export const terminalRequest = z.strictObject({
  argv: z.array(noNul(limits.execArgvItemBytes)).min(1).max(limits.execArgvItems),
  env: processEnv.optional(),
  cwd: cwd.optional(),
  timeoutMs: z.int().min(limits.execTimeoutMs.min).max(limits.terminalMs),
  user: machineUser.optional(),
  size: size.nullable(),
})

/** What comes beside bytes, as a message frame. */
export const terminalMessage = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('resize'), size }),
  z.strictObject({ kind: z.literal('signal'), signal: z.enum(terminalSignals) }),
  z.strictObject({ kind: z.literal('eof') }),
])

/** Of a file: its permission bits, with those for setuid, setgid and sticky. */
export const fileMode = z.int().min(0).max(0o7777)

/** An engine of an earlier release does not say whose an entry is. */
const entryFacts = z.object({
  type: z.enum(['file', 'directory', 'link', 'other']),
  mode: fileMode,
  bytes: z.number(),
  modifiedAt: date,
  uid: z.number().default(0),
  gid: z.number().default(0),
  owner: z.string().nullable().default(null),
  group: z.string().nullable().default(null),
})

export const fileFacts = entryFacts.extend({ target: z.string().nullable() })

export const fileOwner = z.strictObject({ mode: fileMode.optional(), user: machineUser.optional() })

export const directory = z.object({
  entries: z.array(entryFacts.extend({ name: z.string() })).max(limits.directoryEntries),
  truncated: z.boolean(),
})

export const machineSeen = z.array(z.object({ ...seenLine.shape, machine: id })).max(SEEN_AT_ONCE)

export const pullProgress = z.object({
  machines: z.array(id),
  stage: z.enum(pullStages),
  ageMs: z.number().min(0),
  bytes: z.object({ done: z.number(), total: z.number() }).nullable(),
  lines: z.array(z.string().max(PULL_LINE_LENGTH)).max(PULL_LINES),
})

export const hostFacts = z.object({
  instance: z.string(),
  boot: z.string(),
  nowMs: z.number(),
  subnet: z.string(),
  gateway: z.unknown().optional(),
  version: z.string().max(32).optional(),
})

export const image = z.object({
  reference: z.string(),
  digest: z.string(),
  config: z.object({
    env: z.array(z.string()),
    entrypoint: z.array(z.string()),
    cmd: z.array(z.string()),
    workingDir: z.string(),
    user: z.string(),
    exposedPorts: z.array(z.number()),
  }),
})

const diskMetrics = z.object({ usedBytes: z.number().nullable(), limitBytes: z.number() })

export const machineMetrics = z.object({
  at: date,
  run: z
    .object({
      generation: z.number(),
      cpu: z.object({ usedMs: z.number(), limitedMs: z.number() }),
      memory: z.object({
        usedBytes: z.number(),
        cacheBytes: z.number(),
        peakBytes: z.number().nullable(),
        limitBytes: z.number(),
      }),
      pids: z.object({ count: z.number(), limit: z.number() }),
      network: z.object({ receivedBytes: z.number(), sentBytes: z.number() }).nullable(),
      io: z.object({ readBytes: z.number(), writtenBytes: z.number() }).nullable(),
    })
    .nullable(),
  disk: diskMetrics,
  volume: diskMetrics.nullable(),
})

const certificate = z.string().max(MAX_CERTIFICATE_BYTES)

export const renewalOutcome = z.union([
  z.strictObject({ engine: certificate, gateway: certificate }),
  z.strictObject({ refused: z.string().max(MAX_REFUSAL_LENGTH) }),
])

export const renewal = z.object({
  endsAt: date,
  request: z.string().max(MAX_RENEWAL_REQUEST_BYTES).nullable(),
})
