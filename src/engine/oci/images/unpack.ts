// Unpacks an OCI layout into a root file system that is safe to store, in the unpack jail.

import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { EngineError } from '../../errors.ts'
import type { ImageLimits } from './image-limits.ts'
import type { Charge } from '../kernel/team-groups.ts'
import { imageError } from './failures.ts'
import { runJailed } from './jail.ts'

const outcomeSchema = z.object({
  kind: z.enum(['unpacked', 'failed', 'too-large', 'too-many-files', 'too-deep', 'too-slow', 'host-full']),
})

export type UnpackOptions = { limits: ImageLimits; reserveBytes: number; charge: Charge; signal: AbortSignal }

const tooSlow = 'unpacking it takes too long'

/** Unpacks into `rootfs`, which must not exist, and cleans it (jailed/unpack.ts). */
export async function unpack(
  reference: string,
  paths: { layout: string; rootfs: string },
  { limits, reserveBytes, charge, signal }: UnpackOptions,
): Promise<void> {
  await mkdir(dirname(paths.rootfs), { recursive: true })
  const treeLimits = { bytes: limits.unpackedBytes, files: limits.files, depth: limits.depth, reserveBytes }
  const result = await runJailed(
    {
      program: 'unpack',
      args: [JSON.stringify(treeLimits)],
      readOnly: { '/layout': paths.layout },
      writable: { '/image': dirname(paths.rootfs) },
      account: null,
      maxFileBytes: limits.unpackedBytes,
      maxCpuS: limits.unpackCpuS,
    },
    { timeoutMs: limits.unpackMs, maxOutputBytes: 64 * 1024, charge, signal },
  )
  if (result.timedOut) throw imageError('image_invalid', reference, tooSlow)
  const outcome = outcomeSchema.safeParse(parseJson(result.stdout)).data?.kind ?? 'failed'
  if (outcome !== 'unpacked') throw refusal(outcome, reference, result.stderr)
}

function refusal(
  outcome: Exclude<z.infer<typeof outcomeSchema>['kind'], 'unpacked'>,
  reference: string,
  stderr: string,
): EngineError {
  const cause = new Error(`umoci: ${stderr.slice(-2000)}`)
  switch (outcome) {
    case 'too-large':
      return imageError('image_invalid', reference, 'it is too large unpacked', cause)
    case 'too-many-files':
      return imageError('image_invalid', reference, 'it has too many files', cause)
    case 'too-deep':
      return imageError('image_invalid', reference, 'its directories lie too deep within each other', cause)
    case 'too-slow':
      return imageError('image_invalid', reference, tooSlow, cause)
    case 'host-full':
      return imageError('host_full', reference, undefined, cause)
    case 'failed':
      return imageError('image_invalid', reference, 'its layers cannot be unpacked', cause)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
