// Connects two sockets with each other.

import type { Socket } from 'node:net'
import { type Mask, through } from './broker/mask.ts'

/**
 * Passes bytes with backpressure; the end of one side ends that direction, an error both.
 *
 * @param mask What is covered in the bytes from `other` to `one`.
 */
export function splice(one: Socket, other: Socket, mask: Mask | null = null): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      if (!from.readableEnded) to.destroy()
    })
    through(from === other ? mask : null, from).pipe(to)
  }
}
