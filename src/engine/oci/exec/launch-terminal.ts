// Starts one exec in a terminal and waits for its outcome. Either runtime makes the terminal, hands over its master, and
// exits; the process of its pid file (the command with runc, its watcher with runsc) then becomes our child and ends as
// the command does.

import { rmSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import { boundedText } from '../../../lib/bounded-text.ts'
import { killProcessGroup, SAFE_PATH } from '../../../lib/process.ts'
import type { TerminalSignal, TerminalSize } from '../../terminal.ts'
import { waitForChild } from '../kernel/children.ts'
import { startProgram } from '../kernel/programs.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import {
  acceptConnection,
  listenForTerminal,
  receiveTerminal,
  resizeTerminal,
  signalForeground,
} from '../kernel/terminals.ts'
import { trackLaunch } from '../runtime/launching.ts'
import type { Attempt, Outcome } from '../runtime/attempt.ts'
import { type Launch, readPid, signalGroup } from './launch.ts'
import { drain, openReader, pump } from '../kernel/pipes.ts'
import { errorCodeOf } from '../../../lib/error-code.ts'

const NOT_EXECUTABLE = 126
const MAX_COMPLAINT = 4096
/** How often is looked for what the runtime sends, and for room in a terminal that takes no more. */
const LOOK_EVERY_MS = 5
const ROOM_EVERY_MS = { min: 2, max: 50 }

type Running = { master: ReadStream; fd: number; pid: number }

export function launchTerminal(launch: Launch & { size: TerminalSize }): Attempt {
  const { driver, paths, files, cgroupChild, size } = launch
  const consoleSocket = files.processFile.replace(/\.json$/, '.tty')
  const listener = listenForTerminal(consoleSocket)
  const args = driver.terminalArgs(paths.container, { ...files, consoleSocket }, cgroupChild)
  const [command, commandArgs] = launch.charge(driver.binary, args)
  const stderr = createPipe()
  const stdio = [null, null, stderr.writeEnd]
  const launcher = startProgram(command, commandArgs, { env: { PATH: SAFE_PATH }, stdio })
  closeFd(stderr.writeEnd)
  const complaints = openReader(stderr.readEnd)
  const complaint = boundedText(MAX_COMPLAINT)
  complaints.on('data', (data: Buffer) => complaint.add(data))
  const launched = launcher.ended.then(({ exitCode }) => exitCode ?? NOT_EXECUTABLE)
  trackLaunch(launch.launching, launched)

  let cancelled = false
  let running: Running | null = null
  const begun = Promise.withResolvers<void>()
  const over = new AbortController()
  const letGo = Promise.withResolvers<Outcome>()
  const readerFailed = Promise.withResolvers<never>()
  readerFailed.promise.catch(() => {})

  const follow = async (): Promise<Outcome> => {
    const fd = await receive(listener, launched, over.signal)
    if (fd === null) return { kind: 'not-started', complaint: complaint.text() }
    resizeTerminal(fd, size)
    const master = new ReadStream(fd)
    master.on('error', () => {})
    over.signal.addEventListener('abort', () => master.destroy(), { once: true })
    const code = await launched
    const pid = readPid(files.pidFile)
    if (code !== 0 || pid === null) return { kind: 'not-started', complaint: complaint.text() }
    running = { master, fd, pid }
    begun.resolve()
    if (cancelled) await launch.kill()
    const output = pump('stdout', Object.assign(master, { fd }), launch.onOutput)
    output.ended.catch(readerFailed.reject)
    if (launch.stdin !== null) void type(running, launch.stdin)
    const exitCode = await waitForChild(pid)
    // From here on the number may be another's.
    running = null
    await drain([output], launch.leave)
    return { kind: 'ended', exitCode }
  }

  const act = (work: (now: Running) => void) =>
    void begun.promise.then(() => {
      if (running && !running.master.destroyed) work(running)
    })
  return {
    outcome: Promise.race([follow(), letGo.promise]).finally(() => {
      over.abort()
      complaints.destroy()
      rmSync(consoleSocket, { force: true })
    }),
    readerFailed: readerFailed.promise,
    cancel: () => void (cancelled = true),
    letGo: () => {
      launcher.kill()
      // The watcher of a sandbox that does not answer.
      if (running && !driver.execDetaches) killProcessGroup(running.pid)
      void Promise.race([readerFailed.promise, Promise.resolve()]).then(
        () => letGo.resolve({ kind: 'let-go' }),
        letGo.reject,
      )
    },
    signal: (signal) => {
      if (signal === 'KILL') void launch.kill()
      else act((now) => send(now, signal))
    },
    resize: (to) => act(({ fd }) => resizeTerminal(fd, to)),
  }
}

/** The watcher of a sandbox passes signals on to what runs in the foreground there. */
function send({ fd, pid }: Running, signal: Exclude<TerminalSignal, 'KILL'>): void {
  if (signal === 'INT' || signal === 'QUIT') signalForeground(fd, signal)
  else signalGroup(pid, signal)
}

/** Returns the master of the terminal; null if the runtime ended without one. Closes the listener. */
async function receive(
  listener: number,
  launched: Promise<number>,
  over: AbortSignal,
): Promise<number | null> {
  let hasEnded = false
  launched.then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  )
  let connection: number | null = null
  try {
    while (!over.aborted) {
      // What it sent before it ended is there after that.
      const isLast = hasEnded
      connection ??= acceptConnection(listener)
      const master = connection === null ? null : receiveTerminal(connection)
      if (master !== null) return master
      if (isLast) return null
      await Promise.race([delay(LOOK_EVERY_MS), launched])
    }
    return null
  } finally {
    closeFd(listener)
    if (connection !== null) closeFd(connection)
    await launched.catch(() => {})
  }
}

/**
 * Writes what is typed, no faster than the terminal takes it, and never waiting in the kernel: nothing may hold the engine up
 * because a program does not read. Ends with the terminal.
 */
async function type({ master, fd }: Running, pieces: Buffer | AsyncIterable<Buffer>): Promise<void> {
  try {
    for await (const piece of Buffer.isBuffer(pieces) ? [pieces] : pieces) {
      let waitMs: number = ROOM_EVERY_MS.min
      for (let at = 0; at < piece.length && !master.destroyed; ) {
        const written = tryWrite(fd, piece.subarray(at))
        at += written
        waitMs = written > 0 ? ROOM_EVERY_MS.min : Math.min(2 * waitMs, ROOM_EVERY_MS.max)
        if (at < piece.length) await delay(waitMs)
      }
      if (master.destroyed) return
    }
  } catch {
    // The other side is closed.
  }
}

function tryWrite(fd: number, data: Buffer): number {
  try {
    return writeSync(fd, data)
  } catch (error) {
    if (errorCodeOf(error) === 'EAGAIN') return 0
    throw error
  }
}
