// Connects two sockets with each other.

import type { Socket } from 'node:net'

/** Passes bytes with backpressure; the end of one side ends that direction, an error both. */
export function splice(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      if (!from.readableEnded) to.destroy()
    })
    from.pipe(to)
  }
}
