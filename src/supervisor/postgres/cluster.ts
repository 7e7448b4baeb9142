// The directory of the embedded Postgres, `<dataDir>/postgres`: the copy of the program, the cluster (`data`) and the
// access files. As root, everything in it runs confined as berth-postgres, which owns only the cluster; without root,
// as the caller.

import { spawn, type ChildProcess } from 'node:child_process'
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { MINUTE } from '../../lib/clock.ts'
import { runOrThrow, SAFE_PATH } from '../../lib/process.ts'
import { getAccount, type Account } from '../../lib/system-users.ts'
import { sandboxed } from '../sandbox.ts'
import { installProgram } from './program.ts'

export type Cluster = {
  /** The path as this process sees it. */
  dataDir: string
  socketDir: string
  /** Starts the server and returns its process; its standard error is a pipe. */
  spawnServer(settings: Record<string, string>): ChildProcess
}

const environment = { PATH: SAFE_PATH, LC_ALL: 'C.UTF-8' }

/** Creates what is missing of the cluster. Throws a sentence if an existing one cannot be used. */
export async function prepareCluster(root: string, socketDir: string): Promise<Cluster> {
  const account = process.getuid?.() === 0 ? await getAccount('berth-postgres') : null
  await mkdir(root, { recursive: true })
  await chmod(root, 0o755)
  await mkdir(socketDir, { recursive: true })
  if (account) await chown(socketDir, 0, account.gid)
  // Sticky: the server creates its socket here, but cannot replace files of root.
  await chmod(socketDir, 0o1775)
  const program = await installProgram(root)

  // The confined server sees `root` inside its socket directory, so its user needs access to no other path.
  const seenAs = account ? join(socketDir, 'files') : root
  if (account) await mkdir(seenAs, { recursive: true })
  const seen = (path: string) => path.replace(root, seenAs)
  const command = (name: string, args: string[]): [string, string[]] => {
    const argv = [join(seen(program), 'bin', name), ...args]
    return account ? sandboxed(confinement(account, root, seenAs, socketDir), argv) : [argv[0] ?? '', args]
  }

  const dataDir = join(root, 'data')
  if (!(await exists(dataDir))) await initialise(command, root, seen, account)
  await refuseOtherMajor(dataDir, program)
  await writeAccessFiles(root, account)

  return {
    dataDir,
    socketDir,
    spawnServer: (settings) => {
      const all: Record<string, string> = {
        ...settings,
        unix_socket_directories: socketDir,
        hba_file: join(seenAs, 'hba.conf'),
        ident_file: join(seenAs, 'ident.conf'),
      }
      const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      const [file, args] = command('postgres', ['-D', seen(dataDir), ...flags])
      return spawn(file, args, {
        detached: true,
        cwd: '/',
        env: environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
    },
  }
}

function confinement(account: Account, root: string, seenAs: string, socketDir: string) {
  return {
    user: account.name,
    // Fast shutdown: a killed supervisor leaves a clean cluster behind.
    deathSignal: 'SIGINT' as const,
    binds: [
      { mode: 'rw' as const, from: '/dev/shm', to: '/dev/shm' },
      { mode: 'rw' as const, from: socketDir, to: socketDir },
      { mode: 'rw' as const, from: root, to: seenAs },
    ],
  }
}

/** Renamed into place when complete, so that a crash leaves no partial cluster. */
async function initialise(
  command: (name: string, args: string[]) => [string, string[]],
  root: string,
  seen: (path: string) => string,
  account: Account | null,
): Promise<void> {
  const half = join(root, 'half-data')
  await rm(half, { recursive: true, force: true })
  await mkdir(half, { mode: 0o700 })
  if (account) await chown(half, account.uid, account.gid)
  const [file, args] = command('initdb', [
    `--pgdata=${seen(half)}`,
    '--username=postgres',
    '--auth=peer',
    '--encoding=UTF8',
    // Collation by code point, which is the same on every host and in every version of the C library.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C.UTF-8',
    '--data-checksums',
  ])
  await runOrThrow(file, args, { timeoutMs: 5 * MINUTE, env: environment })
  await rename(half, join(root, 'data'))
}

async function refuseOtherMajor(dataDir: string, program: string): Promise<void> {
  const made = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim()
  const here = /program-(\d+)\./.exec(program)?.[1]
  if (made === here) return
  throw new Error(
    `${dataDir} was made by Postgres ${made} and this is Postgres ${here}: dump it with the older release of Berth first.`,
  )
}

/** Written at every start, so that they match this release. */
async function writeAccessFiles(root: string, account: Account | null): Promise<void> {
  const asOwner = account ? ['root', 'berth-postgres'] : [userInfo().username]
  const users = [
    ...asOwner.flatMap((user) => ['postgres', 'berth', 'berth_gateway'].map((role) => [user, role])),
    ...(account
      ? [
          ['berth', 'berth'],
          ['berth-gateway', 'berth_gateway'],
        ]
      : []),
  ]
  await writeFile(join(root, 'ident.conf'), users.map((pair) => `berth ${pair.join(' ')}\n`).join(''), {
    mode: 0o644,
  })
  await writeFile(join(root, 'hba.conf'), 'local all all peer map=berth\n', { mode: 0o644 })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
