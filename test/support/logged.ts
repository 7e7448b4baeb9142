// What was logged, line by line.

import { Writable } from 'node:stream'
import { LIMIT_REACHED } from '../../src/lib/limit-reached.ts'

/** For a log that writes its lines here. */
export function lineSink(lines: string[]): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString())
      done()
    },
  })
}

/** The bounds that the lines say were met, and by whom. */
export function boundsIn(lines: string[]): [bound: unknown, by: unknown][] {
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .flatMap(({ msg, bound, by }) => (msg === LIMIT_REACHED ? [[bound, by]] : []))
}
