// Connects two sockets with each other.

import type { Socket } from 'node:net'
import { type Mask, through } from './broker/mask.ts'
import type { Reads } from './reads.ts'

type Ways = { mask?: Mask | null; reads?: Reads }

/**
 * Passes bytes with backpressure; the end of one side ends that direction, an error both.
 *
 * @param mask What is covered in the bytes from `other` to `one`.
 * @param reads By which `other` was connected: they send to `one`.
 */
export function splice(one: Socket, other: Socket, { mask = null, reads }: Ways = {}): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      if (!from.readableEnded) to.destroy()
    })
    if (from === one) from.pipe(to)
    else if (reads) from.once('end', () => to.end())
    else through(mask, from).pipe(to)
  }
  reads?.begin(other)
}
