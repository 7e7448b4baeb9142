// Where log lines go. A disk that is full must not end who logs: lines that cannot be written are dropped and counted,
// and the first that can be again comes behind one that says how many.

import { writeSync } from 'node:fs'

export type LogDestination = { write(line: string): void }

/** `write` answers how many bytes of it were taken. */
export function openLogDestination(
  fd: number,
  write: (fd: number, bytes: Buffer) => number = writeSync,
): LogDestination {
  let dropped = 0
  /** The newest line in the file has no end. */
  let isTorn = false

  const writeWhole = (text: string): void => {
    const bytes = Buffer.from(text)
    let done = 0
    try {
      while (done < bytes.length) done += write(fd, bytes.subarray(done))
    } finally {
      if (done > 0) isTorn = done < bytes.length
    }
  }

  return {
    write: (line) => {
      try {
        if (isTorn) writeWhole('\n')
        if (dropped > 0) writeWhole(`${droppedLine(dropped)}\n`)
        dropped = 0
        writeWhole(line)
      } catch {
        dropped += 1
      }
    },
  }
}

function droppedLine(dropped: number): string {
  const fields = { level: 40, time: new Date().toISOString(), pid: process.pid, dropped }
  return JSON.stringify({ ...fields, msg: 'lines of the log were dropped: they could not be written' })
}
