// The pipes between a command in a machine and its caller: real ones (syscalls.ts), read no faster than the caller
// takes the data.

import { once } from 'node:events'
import { Socket } from 'node:net'
import type { ExecOutput } from '../../exec.ts'

export type OnOutput = (output: ExecOutput) => void | Promise<void>

/** Null: it ends at once. Pieces are read no faster than the command takes them. */
export type Stdin = Buffer | AsyncIterable<Buffer> | null

/** How long to wait for output of child processes after the command itself has ended. */
const DRAIN_MS = 50

/** `ended` rejects with the caller's own error if the caller fails to take output. */
export type Pump = { ended: Promise<void>; idleSince: () => number; stop: () => void }

/** Data stays in the pipe until it is pumped; destroying the reader closes the pipe. */
export function openReader(fd: number): Socket {
  const reader = new Socket({ fd, readable: true, writable: false })
  reader.on('error', () => {})
  return reader
}

/** Reads a pipe to its end, never faster than `onOutput` takes it. */
export function pump(stream: 'stdout' | 'stderr', reader: Socket, onOutput: OnOutput): Pump {
  let lastData = performance.now()
  let busy = false
  const ended = (async () => {
    for await (const data of bytesOf(reader)) {
      busy = true
      await onOutput({ stream, data })
      busy = false
      lastData = performance.now()
    }
  })()
  return { ended, idleSince: () => (busy ? performance.now() : lastData), stop: () => reader.destroy() }
}

/** A pipe that breaks or is closed has ended. */
async function* bytesOf(socket: Socket): AsyncIterable<Buffer> {
  const chunks = socket[Symbol.asyncIterator]()
  for (;;) {
    const next = await chunks.next().catch(() => null)
    if (next === null || next.done) return
    yield next.value as Buffer
  }
}

/**
 * The command has ended: everything it wrote is in the pipes and is read to the end. A child it left behind may keep
 * them open for ever, so they are closed once no more data arrives for a moment.
 */
export async function drain(pumps: Pump[]): Promise<void> {
  const allEnded = Promise.all(pumps.map((one) => one.ended)).then(() => true)
  const since = performance.now()
  for (;;) {
    const pause = new Promise<boolean>((resolve) => setTimeout(resolve, DRAIN_MS, false))
    if (await Promise.race([allEnded, pause])) return
    // If this process was busy, it has not read the pipes: silence only counts after a read.
    for (const _turn of [1, 2]) await new Promise(setImmediate)
    const lastData = Math.max(since, ...pumps.map((one) => one.idleSince()))
    if (performance.now() - lastData >= DRAIN_MS) break
  }
  for (const one of pumps) one.stop()
}

export function feed(fd: number, content: Buffer | AsyncIterable<Buffer>): void {
  const socket = new Socket({ fd, readable: false, writable: true })
  // The command may end without reading its input.
  socket.on('error', () => {})
  if (Buffer.isBuffer(content)) socket.end(content)
  else void feedPieces(socket, content)
}

/** If the source fails, the command's input ends; the owner of the source reports the error. */
async function feedPieces(socket: Socket, pieces: AsyncIterable<Buffer>): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (socket.destroyed) break
      if (socket.write(piece)) continue
      const settled = new AbortController()
      const { signal } = settled
      await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal })])
      settled.abort()
    }
  } catch {}
  socket.end()
}
