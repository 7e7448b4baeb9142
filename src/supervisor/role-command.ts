// How each role is started, and as whom. The engine needs root; every other role runs confined, and sees the
// program through its run directory, since the project may lie where its user cannot look.

import { chmod, chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RoleInput, RoleName } from '../roles/channel.ts'
import { type AccountName, getAccount } from './accounts.ts'
import { type Confinement, confined } from './confine.ts'

const users = {
  engine: null,
  migrate: 'berth',
  server: 'berth',
  gateway: 'berth-gateway',
} as const satisfies Record<RoleName, AccountName | null>

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Where confined roles see node, the project and (the server) a directory of their own. */
const seenIn = (runDir: string) => ({
  node: join(runDir, 'node'),
  program: join(runDir, 'program'),
  state: join(runDir, 'state'),
})

export const stateDirOf = (runDir: string) => seenIn(runDir).state
const keptStateOf = (dataDir: string) => join(dataDir, 'server')

/** The directories and mount points roles are started with. */
export async function prepareRoleDirectories(dataDir: string, runDir: string): Promise<void> {
  const seen = seenIn(runDir)
  for (const path of [seen.program, seen.state]) await mkdir(path, { recursive: true })
  await writeFile(seen.node, '')
  await chmod(runDir, 0o711)

  const { uid, gid } = await getAccount('berth')
  await mkdir(keptStateOf(dataDir), { recursive: true })
  await chmod(keptStateOf(dataDir), 0o700)
  await chown(keptStateOf(dataDir), uid, gid)
}

/** The command and arguments that run a role. */
export function roleCommand(name: RoleName, input: RoleInput): [string, string[]] {
  const user = users[name]
  const argv = (node: string, directory: string) => [node, join(directory, 'src/main.ts'), name]
  if (user === null) return ['setpriv', ['--pdeathsig=KILL', '--', ...argv(process.execPath, project)]]
  const seen = seenIn(input.runDir)
  return confined(confinementOf(name, user, input), argv(seen.node, seen.program))
}

function confinementOf(name: RoleName, user: AccountName, { config, runDir }: RoleInput): Confinement {
  const seen = seenIn(runDir)
  const state = { mode: 'rw', from: keptStateOf(config.dataDir), to: seen.state } as const
  const ports = [config.apiAddress, config.gatewayHttp, config.gatewayTls].map(({ port }) => port)
  return {
    user,
    deathSignal: 'SIGKILL',
    lowPorts: ports.some((port) => port < 1024),
    withoutMountsBelow: [config.dataDir, config.imagesDir, runDir, '/run/netns'],
    binds: [
      { mode: 'ro', from: process.execPath, to: seen.node },
      { mode: 'ro', from: project, to: seen.program },
      ...(name === 'server' ? [state] : []),
    ],
  }
}
