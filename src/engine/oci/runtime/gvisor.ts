// The driver of class gvisor: a sandbox with a kernel of its own. The only file that knows how runsc is called.

import { rename, writeFile } from 'node:fs/promises'
import { startByProgram, terminateByProgram } from './by-program.ts'
import { byProgram, type Driver, type DriverOptions } from './driver.ts'

/**
 * directfs off: the sandbox itself opens no host file. Exclusive file access: only the machine uses its disk and
 * volume while it runs. overlay2 off: the default would discard the disk at exit.
 */
const RUNSC_FLAGS = [
  '--network=sandbox',
  '--host-uds=none',
  '--host-fifo=none',
  '--directfs=false',
  '--overlay2=none',
  '--file-access=exclusive',
  '--file-access-mounts=exclusive',
  '--cpu-num-from-quota=true',
]

/**
 * A newer runsc has the processes that serve files share an empty network namespace, which it leaves mounted. Older ones make
 * one for each, and do not know this flag.
 */
const GOFERS_APART = '--gofer-network-namespace=new'

/**
 * A machine made ahead was begun with another command than its configuration has by the time it is restored. What must be the
 * same is compared before (checkpoint/checkpoints.ts). A runsc that lacks one of the two runs without both.
 */
const RESTORES_ANY_SPEC = '--restore-spec-validation=ignore'

/** How the sandbox catches the system calls of what runs in it: by seccomp, or by hardware virtualization. */
export type Platform = 'systrap' | 'kvm'

/** Raw sockets of the sandbox's own network stack. What they send meets the host's rules (network/firewall-rules.ts). */
const PLAIN_FLAGS = ['--net-raw=false']
const NESTED_FLAGS = ['--net-raw=true', '--allow-packet-socket-write=true']

/**
 * `launcher`: runsc itself, or the wrapper that masks the host from it. `knowsGofers`: whether it takes GOFERS_APART. `nests`:
 * for machines in which containers may run. `platform`: see probes/platform.ts.
 */
export function gvisorDriver(
  root: string,
  version: string,
  kept: { program: string; path: string },
  { deadlineMs, logFileBytes }: Pick<DriverOptions, 'deadlineMs' | 'logFileBytes'>,
  {
    launcher = kept.path,
    knowsGofers = false,
    nests = false,
    platform = 'systrap',
  }: { launcher?: string; knowsGofers?: boolean; nests?: boolean; platform?: Platform } = {},
): Driver {
  const own = [`--platform=${platform}`, ...(nests ? NESTED_FLAGS : PLAIN_FLAGS)]
  const program = {
    binary: kept.path,
    launcher,
    globalArgs: [
      '--root',
      root,
      ...RUNSC_FLAGS,
      ...own,
      ...(knowsGofers ? [GOFERS_APART, RESTORES_ANY_SPEC] : []),
    ],
    deadlineMs,
  }
  const { globalArgs } = program
  return {
    class: 'gvisor',
    version,
    program: kept.program,
    root,
    ...program,
    execDetaches: false,
    cutsWrites: true,
    logFileBytes,
    memory: null,
    nested: { driver: null, why: 'it was not tried' },
    commands: byProgram,
    start: ({ container }, signal) => startByProgram(program, container, signal),
    terminate: (container, signal) => terminateByProgram(program, container, signal),
    execArgs(container, { processFile, pidFile }, { stderrFd = null, extraFd = null } = {}) {
      const stderr = stderrFd === null ? [] : ['--pass-fd', `${stderrFd}:2`]
      const extra = extraFd === null ? [] : ['--pass-fd', `${extraFd}:3`]
      const files = ['--process', processFile, '--pid-file', pidFile]
      return [...globalArgs, 'exec', ...files, ...stderr, ...extra, container]
    },
    terminalArgs(container, { processFile, pidFile, consoleSocket }) {
      const asked = ['exec', '--detach', '--console-socket', consoleSocket, '--process', processFile]
      return [...globalArgs, ...asked, '--pid-file', pidFile, container]
    },
  }
}

/**
 * Since 6.17 net.core.rmem_default is a setting of each network namespace; runsc of 2024 and older takes it for the
 * host's namespace and refuses to start. With nothing below /proc/sys/net it starts.
 */
export async function writeMaskedRunsc(path: string, runsc: string): Promise<void> {
  // All of it by one static program, which starts in half of the time that the separate ones take.
  const script = `#!/bin/busybox sh
exec /bin/busybox unshare --mount --propagation slave /bin/busybox sh -c '/bin/busybox mount -t tmpfs -o ro none /proc/sys/net && exec "$0" "$@"' ${runsc} "$@"
`
  await writeFile(`${path}.new`, script, { mode: 0o700 })
  await rename(`${path}.new`, path)
}
