// Berth's one program. `all` supervises the roles; `doctor`, `sign-in`, `rotate-key`, `team`, `credits`, `hosts`, `images`,
// `aside`, `backup` and `restore` are commands of the operator.
// Each loads only what it needs.

import { loadConfig } from './config.ts'
import { runProcess } from './processes/run-process.ts'
import { endProcess } from './lib/end-process.ts'
import { printError } from './lib/terminal.ts'

/** Each answers the exit code. */
const commands: Record<string, (args: string[]) => Promise<number>> = {
  all: async () => (await import('./supervisor/supervisor.ts')).supervise(loadConfig()),
  doctor: async () => (await import('./doctor/doctor.ts')).runDoctor(loadConfig()),
  'rotate-key': async (args) => (await import('./operator/rotate-key.ts')).rotateKey(loadConfig(), args),
  'sign-in': async (args) => (await import('./operator/sign-in.ts')).printSignInLink(loadConfig(), args),
  team: async (args) => (await import('./operator/team.ts')).runTeamCommand(loadConfig(), args),
  credits: async (args) => (await import('./operator/credits.ts')).runCreditsCommand(loadConfig(), args),
  hosts: async (args) => (await import('./operator/hosts.ts')).runHostsCommand(loadConfig(), args),
  images: async (args) => (await import('./operator/images.ts')).runImagesCommand(loadConfig(), args),
  aside: async (args) => (await import('./operator/aside.ts')).runAsideCommand(loadConfig(), args),
  backup: async (args) => (await import('./operator/backup.ts')).runBackup(loadConfig(), args),
  restore: async (args) => (await import('./operator/restore.ts')).runRestore(loadConfig(), args),

  // Started by the supervisor, which tells them their settings.
  engine: async () => runProcess('engine', (await import('./processes/engine.ts')).engineProcess),
  migrate: async () => runProcess('migrate', (await import('./processes/migrate.ts')).migrateProcess),
  server: async () => runProcess('server', (await import('./processes/server.ts')).serverProcess),
  egress: async () => runProcess('egress', (await import('./processes/egress.ts')).egressProcess),
  gateway: async () => runProcess('gateway', (await import('./processes/gateway.ts')).gatewayProcess),
}

const [name = 'all', ...args] = process.argv.slice(2)
const command = commands[name]
try {
  if (!command)
    throw new Error(`There is no command "${name}": it is one of ${Object.keys(commands).join(', ')}.`)
  await endProcess(await command(args))
} catch (error) {
  printError(error instanceof Error ? error.message : String(error))
  await endProcess(1)
}
