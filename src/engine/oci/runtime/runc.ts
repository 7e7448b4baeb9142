// The driver of class runc: containers of the host's own kernel. The only file that knows how runc is called.

import { join } from 'node:path'
import { run } from '../kernel/programs.ts'
import { byProgram, type Driver, type DriverOptions } from './driver.ts'
import { releaseFirstProcess } from './exec-fifo.ts'
import { startByProgram, terminateByProgram } from './by-program.ts'

const NO_NESTED =
  'units of class runc share the kernel of the host, and container engines need rights over it that no unit gets'

/** `memory`: see checkpoint/criu-memory.ts. */
export function runcDriver(
  root: string,
  version: string,
  { runc, deadlineMs, logFileBytes }: DriverOptions,
): Driver {
  const program = { binary: runc, launcher: runc, globalArgs: ['--root', root], deadlineMs }
  const { globalArgs } = program
  // Its own messages would be mixed with those of the command.
  const quiet = ['--log', '/dev/null']
  return {
    class: 'runc',
    version,
    program: null,
    root,
    ...program,
    execDetaches: true,
    cutsWrites: false,
    logFileBytes,
    memory: null,
    nested: { driver: null, why: NO_NESTED },
    commands: byProgram,
    async start(paths, signal) {
      const limits = { timeoutMs: deadlineMs, signal }
      const waited = await releaseFirstProcess(join(root, paths.container), paths.pid, limits)
      if (waited === 'started') return { kind: 'started' }
      if (waited !== 'not-there') return { kind: 'failed', reason: `the container's process is ${waited}` }
      return await startByProgram(program, paths.container, signal)
    },
    terminate: (container, signal) => terminateByProgram(program, container, signal),
    execArgs(container, { processFile, pidFile }, { cgroupChild = null, extraFd = null } = {}) {
      const files = ['--process', processFile, '--pid-file', pidFile]
      const extra = extraFd === null ? [] : ['--preserve-fds', '1']
      return [
        ...globalArgs,
        ...quiet,
        'exec',
        '--detach',
        ...files,
        ...group(cgroupChild),
        ...extra,
        container,
      ]
    },
    terminalArgs(container, { processFile, pidFile, consoleSocket }, cgroupChild) {
      const asked = ['exec', '--detach', '--console-socket', consoleSocket, '--process', processFile]
      return [...globalArgs, ...quiet, ...asked, '--pid-file', pidFile, ...group(cgroupChild), container]
    },
  }
}

function group(cgroupChild: string | null): string[] {
  return cgroupChild === null ? [] : ['--cgroup', cgroupChild]
}

const ANSWER_TIMEOUT_MS = 10_000

/** Whether a command of runc's exec ends well in a container. */
export async function runcAnswers(
  { binary, globalArgs }: Driver,
  container: string,
  command: string[],
  signal: AbortSignal,
): Promise<boolean> {
  const args = [...globalArgs, 'exec', container, ...command]
  return (await run(binary, args, { timeoutMs: ANSWER_TIMEOUT_MS, signal })).exitCode === 0
}
