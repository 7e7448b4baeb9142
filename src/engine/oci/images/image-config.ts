// Reads six fields of an untrusted image configuration, and nothing else (design 3): labels, volumes, health checks
// and history have led other hosts to run commands as root.

import { posix } from 'node:path'
import { z } from 'zod'
import type { ImageConfig } from '../../engine.ts'
import { ManifestRefused } from './manifest.ts'

const ARGUMENT_MAX = 64 * 1024
const ARGV_MAX = 256
const ENV_MAX = 512
const ENV_TOTAL_MAX = 256 * 1024
const ID_MAX = 2 ** 31 - 1
const EXPOSED_PORTS_MAX = 32

/** Text for a process: without NUL, where the kernel would cut it. */
const processText = z
  .string()
  .max(ARGUMENT_MAX)
  .regex(/^[^\0]*$/)
const argv = z.array(processText).max(ARGV_MAX)

/** Our own format, as stored in `image.json`. */
export const imageConfigSchema = z.object({
  env: z.array(processText),
  entrypoint: argv,
  cmd: argv,
  workingDir: z.string(),
  user: z.string(),
  exposedPorts: z.array(z.int().min(1).max(65535)),
  ahead: z.object({ command: argv, begun: z.string() }).optional(),
}) satisfies z.ZodType<ImageConfig>

const env = z
  .array(processText)
  .max(ENV_MAX)
  .refine((entries) => entries.reduce((sum, entry) => sum + entry.length, 0) <= ENV_TOTAL_MAX)
  // An entry without a name sets nothing.
  .transform((entries) => entries.filter((entry) => entry.indexOf('=') > 0))

/**
 * `user`, `uid`, each with `:group` or `:gid`. Numbers are below 2^31: beyond that, runtimes have wrapped around to
 * root.
 */
const user = z
  .string()
  .max(128)
  .regex(/^(?:[A-Za-z0-9_][\w.-]*\$?)?(?::[A-Za-z0-9_][\w.-]*)?$/)
  .refine((text) => text.split(':').every((part) => !/^\d+$/.test(part) || Number(part) <= ID_MAX))

/** Never below the kernel's own directories: `/proc/self/fd/8` has led out of containers. */
const workingDir = processText
  .max(4096)
  .transform((path) => posix.resolve('/', path))
  .refine((path) => !/^\/(?:proc|sys|dev)(?:\/|$)/.test(path))

/** `{ "80/tcp": {} }`. They are hints for callers, so surplus and other protocols are ignored. */
const exposedPorts = z.record(z.string(), z.unknown()).transform((ports) => {
  const tcp = Object.keys(ports).map((key) => Number(/^(\d{1,5})(?:\/tcp)?$/.exec(key)?.[1] ?? 0))
  return [...new Set(tcp)].filter((port) => port >= 1 && port <= 65535).slice(0, EXPOSED_PORTS_MAX)
})

// Go writes null for empty values.
const imageFields = z.object({
  Env: env.nullish(),
  Entrypoint: argv.nullish(),
  Cmd: argv.nullish(),
  WorkingDir: workingDir.nullish(),
  User: user.nullish(),
  ExposedPorts: exposedPorts.nullish(),
})
const remoteConfigSchema = z.object({ config: imageFields.nullish() })

/** Throws ManifestRefused if a process cannot be started with a field. */
export function readImageConfig(text: string): ImageConfig {
  const read = remoteConfigSchema.safeParse(parseJson(text))
  if (!read.success) throw new ManifestRefused(`its configuration is not usable (${where(read.error)})`)
  const config = read.data.config ?? {}
  return {
    env: config.Env ?? [],
    entrypoint: config.Entrypoint ?? [],
    cmd: config.Cmd ?? [],
    workingDir: config.WorkingDir ?? '/',
    user: config.User ?? '',
    exposedPorts: config.ExposedPorts ?? [],
  }
}

/** Returns our name of the field; its content is untrusted and left out. */
function where(error: z.ZodError): string {
  const names = Object.keys(imageFields.shape)
  return names.find((name) => error.issues[0]?.path.includes(name)) ?? 'not an image configuration'
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
