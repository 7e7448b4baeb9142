// Bodies and streams on their way: each piece goes on when it is its unit's turn, without the values of secrets.

import { type Readable, Transform } from 'node:stream'
import type { Mask } from './broker/mask.ts'
import type { Turn } from './shares.ts'

/** `mask`: what is covered; null for nothing. */
export function through(mask: Mask | null, body: Readable, turn: Turn): Readable {
  return body.pipe(mask === null ? pacedStream(turn) : mask.stream(turn))
}

function pacedStream(turn: Turn): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const goOn = () => done(null, chunk)
      const wait = turn(chunk.length)
      if (wait === null) goOn()
      else void wait.then(goOn)
    },
  })
}
