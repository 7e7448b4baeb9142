// Connects two sockets with each other.

import type { Socket } from 'node:net'
import type { Transform } from 'node:stream'

/**
 * Passes bytes with backpressure; the end of one side ends that direction, an error both.
 *
 * @param back What the bytes from `other` to `one` pass through.
 */
export function splice(one: Socket, other: Socket, back: { stream: () => Transform } | null = null): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      if (!from.readableEnded) to.destroy()
    })
    if (back !== null && from === other) from.pipe(back.stream()).pipe(to)
    else from.pipe(to)
  }
}
