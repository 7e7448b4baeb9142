// Runs one command in a gVisor sandbox over its control socket. The pipes are passed to the sandbox with the call;
// the rest is as with `runsc exec` (launch.ts).

import { closeSync, fchownSync, openSync } from 'node:fs'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import type { Process } from '../runtime/bundle.ts'
import { type Control, executeOver, waitOver } from '../runtime/control.ts'
import { type Attempt, attempt, type Launch, pumpsOf } from './launch.ts'
import { drain, feed, openReader, type Stdin } from '../kernel/pipes.ts'

export type Direct = Pick<Launch, 'stdin' | 'onOutput' | 'kill' | 'signalInside' | 'leave'> & {
  control: Control
  container: string
  process: Process
}

export function launchDirectly(launch: Direct): Attempt {
  const { control, container, process, stdin, onOutput, kill, signalInside, leave } = launch
  const [stdout, stderr] = [createPipe(), createPipe()]
  const input = openInput(stdin)
  const readers = { stdout: openReader(stdout.readEnd), stderr: openReader(stderr.readEnd) }
  const ends = [stdout.writeEnd, stderr.writeEnd]
  // As runsc does: the sandbox could not change their modes otherwise, as a command may ask.
  const { uid, gid } = control.owner
  for (const fd of stdin === null ? ends : [input.fd, ...ends]) fchownSync(fd, uid, gid)
  const begun = executeOver(control, container, process, [input.fd, stdout.writeEnd, stderr.writeEnd])
  // The call has gone, and the ends with it.
  for (const fd of ends) closeFd(fd)
  input.close()
  return attempt({
    follow: async (watch) => {
      const pumps = pumpsOf({ ...readers, ...watch, onOutput })
      const answer = await begun
      if (answer.kind === 'refused') return { kind: 'not-started', complaint: answer.complaint }
      if (answer.kind === 'begun' && watch.isCancelled()) await kill()
      const exitCode = answer.kind === 'begun' ? await waitOver(control, container, answer.pid) : null
      await drain(pumps, leave)
      return { kind: 'ended', exitCode }
    },
    abandon: control.close,
    close: () => {
      control.close()
      for (const reader of Object.values(readers)) reader.destroy()
    },
    signal: (signal) => void (signal === 'KILL' ? kill() : signalInside(signal)),
  })
}

/** The command's end of its input, which is written at once, as it is taken, or is nothing. */
function openInput(stdin: Stdin): { fd: number; close: () => void } {
  if (stdin === null) {
    const fd = openSync('/dev/null', 'r')
    return { fd, close: () => closeSync(fd) }
  }
  const { readEnd, writeEnd } = createPipe()
  feed(writeEnd, stdin)
  return { fd: readEnd, close: () => closeFd(readEnd) }
}
