// Confines an unprivileged child process (design 2): it runs as its own user, without capabilities or a way to gain
// any, in a mount namespace that shows it the program, and it is killed with the supervisor. The confined command
// keeps the pid that spawn() returned, so signals reach it. Where this process may not mount, as in a pod that is not
// privileged, its container confines all of Berth, and the child sees the same files.

import { fileURLToPath } from 'node:url'
import { mayMount } from '../lib/may-mount.ts'

export type Sandbox = {
  /** A system user; its group has the same name. */
  user: string
  /** Sent to the child when the supervisor's process dies, for whatever reason. */
  deathSignal: 'SIGKILL' | 'SIGINT'
  /** Whether it may listen on ports below 1024, which normally only root may. */
  lowPorts?: boolean
  /** The child's bind mounts. `to` must exist; a child can write only where its user may and `mode` is rw. */
  binds: { mode: 'ro' | 'rw'; from: string; to: string }[]
}

/** World-writable directories: read-only for every confined child. Sockets in them stay reachable. */
const worldWritable = ['/tmp', '/var/tmp', '/dev/shm']

const script = fileURLToPath(new URL('sandbox.sh', import.meta.url))

/** Returns the command and arguments that run `command` confined. Needs root. */
export function sandboxed(confinement: Sandbox, command: string[]): [string, string[]] {
  if (!mayMount()) {
    const [program = '', ...args] = dropPrivileges(confinement)
    return [program, [...args, ...command]]
  }
  const shared = worldWritable.map((path) => ({ mode: 'ro', from: path, to: path }))
  const binds = [...shared, ...confinement.binds].flatMap(({ mode, from, to }) => [mode, from, to])
  return [
    'unshare',
    [
      '--mount',
      // Unmounts on the host propagate to the child, but not the other way.
      '--propagation=slave',
      '--',
      '/bin/sh',
      script,
      ...binds,
      '--',
      ...dropPrivileges(confinement),
      ...command,
    ],
  ]
}

function dropPrivileges({ user, deathSignal, lowPorts }: Sandbox): string[] {
  const capabilities = lowPorts ? '-all,+net_bind_service' : '-all'
  return [
    'setpriv',
    `--reuid=${user}`,
    `--regid=${user}`,
    '--clear-groups',
    `--inh-caps=${capabilities}`,
    `--ambient-caps=${capabilities}`,
    `--bounding-set=${capabilities}`,
    '--no-new-privs',
    `--pdeathsig=${deathSignal.replace('SIG', '')}`,
    '--',
  ]
}
