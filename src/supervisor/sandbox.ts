// How an unprivileged child of ours is started (design 2): as its own user, without capabilities or a way
// to gain any, in a mount namespace that shows it the program wherever the project lies, and gone when the
// supervisor is. The confined command keeps the pid that spawn() answered, so signals reach it.

import { fileURLToPath } from 'node:url'

export type Sandbox = {
  /** A system user; its group has the same name. */
  user: string
  /** Sent to the child when the supervisor's process dies, however it dies. */
  deathSignal: 'SIGKILL' | 'SIGINT'
  /** Whether it may listen on ports below 1024, which else only root may. */
  lowPorts?: boolean
  /** What the child sees where. `to` exists; a child writes nowhere but where its user may and this says rw. */
  binds: { mode: 'ro' | 'rw'; from: string; to: string }[]
}

/** Directories anyone may write to: read-only for every confined child. Sockets in them stay reachable. */
const worldWritable = ['/tmp', '/var/tmp', '/dev/shm']

const script = fileURLToPath(new URL('sandbox.sh', import.meta.url))

/** The command and arguments that run `command` confined. Needs root. */
export function sandboxed(confinement: Sandbox, command: string[]): [string, string[]] {
  const shared = worldWritable.map((path) => ({ mode: 'ro', from: path, to: path }))
  const binds = [...shared, ...confinement.binds].flatMap(({ mode, from, to }) => [mode, from, to])
  return [
    'unshare',
    [
      '--mount',
      // Unmounting on the host reaches in here; nothing reaches out.
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
