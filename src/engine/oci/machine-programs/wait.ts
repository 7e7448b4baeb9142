// The program that a machine made ahead waits in, and what tells it what to become (wait.c).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const WAIT = 'wait'

export const waitingCommand = [`${HELPER_DIR}/${WAIT}`]

const WORD_BYTES = 8
/** The length, and the places of path, arguments and environment. */
const HEAD_WORDS = 4
/** The capacity of a pipe, so that no writer waits for a machine that is still frozen. */
const MESSAGE_BYTES = 60_000

export type Become = { path: string; args: string[]; env: string[] }

/** Returns null if it cannot be told at once. */
export function messageFor({ path, args, env }: Become): Buffer | null {
  const texts = [path, ...args, ...env]
  if (texts.some((text) => text.includes('\0'))) return null
  const words = HEAD_WORDS + args.length + 1 + env.length + 1
  const strings = texts.map((text) => Buffer.from(`${text}\0`))
  const places: number[] = []
  let end = words * WORD_BYTES
  for (const text of strings) {
    places.push(end)
    end += text.length
  }
  if (end > MESSAGE_BYTES) return null
  const [pathAt = 0, ...others] = places
  const argvAt = HEAD_WORDS * WORD_BYTES
  const envpAt = argvAt + (args.length + 1) * WORD_BYTES
  const table = [end, pathAt, argvAt, envpAt, ...others.slice(0, args.length), 0]
  const head = Buffer.alloc(words * WORD_BYTES)
  for (const [index, word] of [...table, ...others.slice(args.length), 0].entries())
    head.writeBigUInt64LE(BigInt(word), index * WORD_BYTES)
  return Buffer.concat([head, ...strings])
}
