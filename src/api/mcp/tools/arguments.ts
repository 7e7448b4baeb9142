// Arguments that several tools share. They are only described here if the operation validates them.

import { z } from 'zod'
import { endpointModes } from '../../../contract/endpoint.ts'
import { strict, text } from '../../../contract/fields.ts'
import { limits } from '../../../contract/limits.ts'

export const unitArgument = text(100).describe('Name, stack/name or id.')
export const nameArgument = text(limits.nameLength)
export const pathArgument = text(limits.pathLength).describe('Absolute.')
export const sleepArgument = text(20).describe('Idle time until it sleeps: "30m", "1d" or "never".')
export const exposeArgument = z.enum(endpointModes)
export const cursorArgument = text(200).describe('"next" of the answer before.')
export const waitArgument = z.int().min(0).max(300).default(45)
export const maxOutputArgument = z.int().min(200).max(40_000).default(12_000).describe('Characters.')

export const onUnit = strict({ unit: unitArgument })

/** How long the operation waits: less than most clients wait for an answer. */
export function waitFor(seconds: number): { wait: boolean; waitTimeoutMs: number } {
  return { wait: seconds > 0, waitTimeoutMs: seconds * 1000 }
}
