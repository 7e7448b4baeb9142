// Writes log lines. A full disk must not end the process that logs: lines that cannot be written are dropped and
// counted, and the next line that can be written is preceded by that count.

import { writeSync } from 'node:fs'

export type LogDestination = { write(line: string): void }

/** `write` returns the number of bytes written. */
export function openLogDestination(
  fd: number,
  write: (fd: number, bytes: Buffer) => number = writeSync,
): LogDestination {
  let dropped = 0
  /** Whether the last line in the file is incomplete. */
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
