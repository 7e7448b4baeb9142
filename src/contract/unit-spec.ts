// The field `spec` of a create (spec 2.3).

import { z } from 'zod'
import { egressAskedSchema } from './egress.ts'
import { portSchema } from './endpoint.ts'
import { envInputSchema } from './env.ts'
import { strict, text } from './fields.ts'
import { bootFilesSchema } from './files.ts'
import { isPlainPath } from './file-paths.ts'
import { imagePattern } from './image-reference.ts'
import { limits } from './limits.ts'
import { metadataSchema } from './metadata.ts'
import { sizes } from './policy.ts'
import { sleepSchema } from './sleep.ts'
import { timeToLiveFields } from './time-to-live.ts'

const nameRule = '1 to 32 lower-case letters and digits, with single dashes between them'

/** Units and stacks have the same naming rule, since both names become part of a host name (design 5). */
export const nameSchema = z
  .string({
    error: (issue) => (issue.input === undefined ? `is required: ${nameRule}` : `must be ${nameRule}`),
  })
  .max(limits.nameLength, `must be ${nameRule}`)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, `must be ${nameRule}`)

const imageSchema = z
  .string({ error: (issue) => (issue.input === undefined ? 'is required, such as "node:22"' : undefined) })
  .min(limits.imageLength.min)
  .max(limits.imageLength.max)
  .regex(imagePattern, 'must be an image reference such as "node:22" or "ghcr.io/owner/name:tag"')

const argvSchema = z
  .array(text(limits.argvItemLength))
  .max(limits.argvItems, `must have at most ${limits.argvItems} items`)

// These trees belong to the kernel and to Berth. /etc and /run cannot be volumes themselves, because the engine puts
// files there.
const reservedTrees = ['/proc', '/sys', '/dev', '/run/berth']

function isMountable(mount: string): boolean {
  const inTree = reservedTrees.some((tree) => mount === tree || mount.startsWith(`${tree}/`))
  return !inTree && mount !== '/etc' && mount !== '/run'
}

const volumeSchema = strict({
  mount: text(limits.volumeMountLength)
    .refine(isPlainPath, {
      error: 'must be an absolute path without "." , ".." or empty parts, such as "/data"',
    })
    .refine(isMountable, { error: `must not be /etc or /run, or lie in ${reservedTrees.join(', ')}` }),
  gb: z
    .int()
    .min(limits.volumeGb.min)
    .max(limits.volumeGb.max)
    .default(limits.volumeGb.default)
    .describe('The size of the volume in GB. `df` in the unit shows the whole pool of the host instead.'),
})

const healthcheckSchema = strict({
  cmd: argvSchema.min(1, 'must have at least 1 item'),
  intervalMs: z.int().min(limits.healthcheckIntervalMs.min).default(limits.healthcheckIntervalMs.default),
  timeoutMs: z
    .int()
    .min(limits.healthcheckTimeoutMs.min)
    .max(limits.healthcheckTimeoutMs.max)
    .default(limits.healthcheckTimeoutMs.default),
})
export type Healthcheck = z.infer<typeof healthcheckSchema>

export const unitSpecSchema = strict({
  name: nameSchema,
  image: imageSchema,
  cmd: argvSchema.optional(),
  entrypoint: argvSchema.optional(),
  env: envInputSchema.default({}),
  ports: z.array(portSchema).max(limits.ports, `must have at most ${limits.ports} items`).default([]),
  size: z.enum(sizes).default('small'),
  volume: volumeSchema.optional(),
  files: bootFilesSchema.default({}),
  healthcheck: healthcheckSchema.optional(),
  sleep: sleepSchema.optional(),
  expose: portSchema.optional(),
  nested: z
    .boolean()
    .default(false)
    .describe(
      'Whether containers may run in the unit, with docker, podman or buildah. Only in the isolation class gvisor, and only for credentials whose policy has `allowNested`.',
    ),
  egress: egressAskedSchema
    .optional()
    .describe('What the unit may reach. Default: what the credential and its team allow.'),
  metadata: metadataSchema.default({}).describe('Labels of yours, by which lists can be filtered.'),
  ...timeToLiveFields,
})
  .refine(({ ports, expose }) => expose === undefined || ports.length === 0 || ports.includes(expose), {
    path: ['expose'],
    error: 'must be one of the ports that the unit declares; add it to "ports", or leave it out',
  })
  .meta({ id: 'UnitSpec' })

export type UnitSpec = z.infer<typeof unitSpecSchema>
