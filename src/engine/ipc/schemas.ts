// What the requests and answers of the engine's socket are made of (protocol.ts): ids, names, counts and sizes are all limited.

import { z } from 'zod'
import { limits } from '../../contract/limits.ts'
import { MINUTE } from '../../lib/clock.ts'
import { isolationClasses } from '../machine.ts'
import { bytes, date, env, generation, id, noNul, path, ref } from './fields.ts'
import { cwd, hostFacts, machineEgress, machineUser, processEnv } from './shapes.ts'

export const epoch = z
  .int()
  .min(0)
  .max(2 ** 31 - 2)

const KB = 1024

export const MB = 1024 * KB

/** The largest standard input of a command. */
const STDIN_BYTES = 4 * MB

/** How many machines may be copied together: far more units than a stack has. */
export const FORKS = 500

const digest = z.string().regex(/^sha256:[a-f0-9]{64}$/)

export const reference = z.string().regex(/^[a-z0-9][\w.:/@-]{2,511}$/)

const hostname = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)

const domain = z
  .string()
  .max(253)
  .regex(/^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/)

const commandLine = z.array(noNul(limits.argvItemLength)).max(limits.argvItems)

export const networkGroup = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)

export const cursor = z.string().max(256)

const bootFiles = z
  .array(z.strictObject({ path, content: bytes(limits.bootFilesBytes) }))
  .max(limits.bootFiles)
  .refine((files) => files.reduce((sum, file) => sum + file.content.length, 0) <= limits.bootFilesBytes)

export const machineSpec = z.strictObject({
  id,
  imageDigest: digest,
  isolation: z.enum(isolationClasses),
  size: z.strictObject({
    cpus: z.number().positive().max(1024),
    memoryMb: z
      .int()
      .positive()
      .max(16 * MB),
    pids: z.int().positive().max(1_000_000),
    diskGb: z.int().positive().max(100_000),
  }),
  volume: z
    .strictObject({ mount: noNul(limits.volumeMountLength), gb: z.int().positive().max(limits.volumeGb.max) })
    .nullable(),
  networkGroup,
  nested: z.boolean().optional(),
})

export const runSpec = z.strictObject({
  hostname,
  entrypoint: commandLine.nullable(),
  cmd: commandLine.nullable(),
  env,
  files: bootFiles,
  searchDomain: domain,
  egress: machineEgress.nullable(),
  probed: z.boolean().optional(),
  note: z.string().max(1000).optional(),
})

export const forkSpec = z.strictObject({ id, source: ref, networkGroup, run: runSpec.nullable() })

export const stopRequest = z.strictObject({
  ref,
  graceMs: z
    .int()
    .min(0)
    .max(5 * MINUTE),
})

export const execRequest = z.strictObject({
  argv: z.array(noNul(limits.execArgvItemBytes)).min(1).max(limits.execArgvItems),
  env: processEnv.optional(),
  cwd: cwd.optional(),
  stdin: bytes(STDIN_BYTES).nullable(),
  timeoutMs: z.int().min(limits.execTimeoutMs.min).max(limits.execTimeoutMs.max),
  probe: z.boolean().optional(),
  worker: z.boolean().optional(),
  user: machineUser.optional(),
})

export const offset = z.int().min(0)

export const logQuery = z.strictObject({
  after: cursor.nullable(),
  since: date.nullable(),
  generation: generation.optional(),
  limit: z
    .int()
    .min(0)
    .max(2 * limits.pageSize.max),
})

export const capabilities = z.object({
  classes: z.array(
    z.object({
      class: z.enum(isolationClasses),
      available: z.boolean(),
      detail: z.string(),
      memory: z.object({ available: z.boolean(), detail: z.string() }),
      nested: z.object({ available: z.boolean(), detail: z.string() }).optional(),
    }),
  ),
  defaultClass: z.enum(isolationClasses),
  defaultReason: z.string(),
  egress: z.boolean().optional(),
  brokersSecrets: z.boolean().optional(),
})

const ready = z.object({ waiting: z.number(), memoryMb: z.number(), hits: z.number(), misses: z.number() })

export const capacity = z.object({
  cpus: z.number(),
  memoryMb: z.number(),
  availableMemoryMb: z.number(),
  teamDiskGb: z.number(),
  disk: z.object({ gb: z.number(), freeGb: z.number() }).optional(),
  readyMachines: ready.optional(),
  host: hostFacts.optional(),
})

export const status = z.object({
  id: z.string(),
  generation: z.number(),
  state: z.enum(['created', 'running', 'exited', 'lost']),
  frozen: z.boolean(),
  exit: z.object({ code: z.number(), oomKilled: z.boolean(), byHost: z.boolean(), at: date }).nullable(),
  address: z.string(),
})

export const logLine = z.object({
  at: date,
  stream: z.enum(['stdout', 'stderr']),
  text: z.string(),
  continues: z.literal(true).optional(),
  cursor: z.string(),
})

export const nobody = z.strictObject({})
