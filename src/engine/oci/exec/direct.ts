// Runs one command in a gVisor sandbox over its control socket. The pipes are passed to the sandbox with the call;
// the rest is as with `runsc exec` (launch.ts).

import { closeSync, fchownSync, openSync } from 'node:fs'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import type { Process } from '../runtime/bundle.ts'
import { EngineError } from '../../errors.ts'
import type { RunPaths } from '../paths.ts'
import { type Control, connectControl, executeOver, runsProbed, waitOver } from '../runtime/control.ts'
import type { Driver } from '../runtime/driver.ts'
import type { Attempt } from '../runtime/attempt.ts'
import { attempt, type Launch, pumpsOf } from './launch.ts'
import { drain, feed, openReader, type Stdin } from '../kernel/pipes.ts'

export type Direct = Pick<Launch, 'stdin' | 'onOutput' | 'kill' | 'signalInside' | 'leave'> & {
  control: Control
  container: string
  process: Process
}

/** Returns null if the command is for the runtime's own exec. */
export async function controlOf({ commands, root }: Driver, paths: RunPaths): Promise<Control | null> {
  const { program, otherwise } = commands
  if (program === null) return null
  const control = await connectControl(root, paths.container)
  if (control && runsProbed(control, program)) return control
  control?.close()
  if (otherwise) return null
  throw new EngineError('not_running', 'The machine takes no commands.')
}

export function launchDirectly(launch: Direct): Attempt {
  const { control, container, process, stdin, onOutput, kill, signalInside, leave } = launch
  const [stdout, stderr] = [createPipe(), createPipe()]
  const input = openInput(stdin)
  const readers = { stdout: openReader(stdout.readEnd), stderr: openReader(stderr.readEnd) }
  const ends = [stdout.writeEnd, stderr.writeEnd]
  giveTo(control, stdin === null ? ends : [input.fd, ...ends])
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

/** As runsc does: the sandbox could not change the modes of its pipes otherwise, as a command may ask. */
export function giveTo({ owner: { uid, gid } }: Control, pipes: number[]): void {
  for (const fd of pipes) fchownSync(fd, uid, gid)
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
