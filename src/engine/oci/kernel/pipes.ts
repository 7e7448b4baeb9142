// The pipes between a command in a machine and its caller: real ones (syscalls.ts), read no faster than the caller
// takes the data.

import { once } from 'node:events'
import { Socket } from 'node:net'
import { bytesInPipe } from './syscalls.ts'
import type { ExecOutput } from '../../exec.ts'

export type OnOutput = (output: ExecOutput) => void | Promise<void>

/** Null: it ends at once. Pieces are read no faster than the command takes them. */
export type Stdin = Buffer | AsyncIterable<Buffer> | null

/** After a command has ended, its children's output is passed on too, until they are silent for so long, … */
const SILENCE_MS = 50
/** … and at most for so long: a server that a command has left behind may never be silent. */
const LISTEN_MS = 1000

/** A pipe that is read, or a terminal. */
export type Reader = Socket & { fd: number }

export type Pump = {
  /** Rejects with the caller's own error if the caller fails to take output. */
  ended: Promise<void>
  fd: number
  idleSince: () => number
  /** How many bytes the caller has taken, and how many more are there. */
  taken: () => number
  waiting: () => number
  stop: () => void
}

/** Data stays in the pipe until it is pumped; destroying the reader closes the pipe. */
export function openReader(fd: number): Reader {
  const reader = new Socket({ fd, readable: true, writable: false })
  reader.on('error', () => {})
  return Object.assign(reader, { fd })
}

/** Reads a pipe to its end, never faster than `onOutput` takes it. */
export function pump(stream: 'stdout' | 'stderr', reader: Reader, onOutput: OnOutput): Pump {
  let lastData = performance.now()
  let taken = 0
  let held = 0
  const ended = (async () => {
    for await (const data of bytesOf(reader)) {
      held = data.length
      await onOutput({ stream, data })
      taken += held
      held = 0
      lastData = performance.now()
    }
  })()
  return {
    ended,
    fd: reader.fd,
    idleSince: () => (held > 0 ? performance.now() : lastData),
    taken: () => taken,
    waiting: () => (reader.destroyed ? 0 : held + reader.readableLength + available(reader.fd)),
    stop: () => reader.destroy(),
  }
}

/** How many bytes wait in a pipe or a terminal; 0 where that cannot be said. */
export function available(fd: number): number {
  try {
    return bytesInPipe(fd)
  } catch {
    return 0
  }
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
 * The command has ended: everything it wrote is in the pipes, and is passed on. Processes that it left behind may keep
 * them open for ever: `leave` is called with the pipes that are still open after a moment, and they are closed here.
 */
export async function drain(pumps: Pump[], leave: (fds: number[]) => void = () => {}): Promise<void> {
  const open = new Set(pumps)
  const allEnded = Promise.all(
    pumps.map(async (one) => {
      await one.ended
      open.delete(one)
    }),
  ).then(() => true)
  const since = performance.now()
  const wanted = pumps.map((one) => ({ one, bytes: one.taken() + one.waiting() }))
  for (;;) {
    const pause = new Promise<boolean>((resolve) => setTimeout(resolve, SILENCE_MS, false))
    if (await Promise.race([allEnded, pause])) return
    // If this process was busy, it has not read the pipes: silence only counts after a read.
    for (const _turn of [1, 2]) await new Promise(setImmediate)
    const now = performance.now()
    const lastData = Math.max(since, ...pumps.map((one) => one.idleSince()))
    const isWhole = wanted.every(({ one, bytes }) => !open.has(one) || one.taken() >= bytes)
    if (isWhole && (now - lastData >= SILENCE_MS || now - since >= LISTEN_MS)) break
  }
  leave([...open].map(({ fd }) => fd))
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
