// Connects two sockets with each other.

import type { Socket } from 'node:net'
import type { Mask } from './broker/mask.ts'
import type { Reads } from './reads.ts'
import type { Turn } from './shares.ts'
import { through } from './through.ts'

type Ways = { turn: Turn; mask?: Mask | null; reads?: Reads }

/**
 * Passes bytes with backpressure; the end of one side ends that direction, an error both.
 *
 * @param turn When the bytes of either may go on.
 * @param mask What is covered in the bytes from `other` to `one`.
 * @param reads By which `other` was connected: they send to `one`.
 */
export function splice(one: Socket, other: Socket, { turn, mask = null, reads }: Ways): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      if (!from.readableEnded) to.destroy()
    })
    if (from === one) through(null, from, turn).pipe(to)
    else if (reads) from.once('end', () => to.end())
    else through(mask, from, turn).pipe(to)
  }
  reads?.begin(other)
}
