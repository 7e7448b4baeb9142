// The code of each command, loaded when the command is called.

import type { Handler } from './context.ts'

const loads: Record<string, () => Promise<Handler>> = {
  login: async () => (await import('./commands/login.ts')).login,
  logout: async () => (await import('./commands/login.ts')).logout,
  whoami: async () => (await import('./commands/whoami.ts')).whoami,
  profiles: async () => (await import('./commands/login.ts')).profiles,
  run: async () => (await import('./commands/run.ts')).run,
  ls: async () => (await import('./commands/list.ts')).ls,
  ps: async () => (await import('./commands/list.ts')).ps,
  'keep-awake': async () => (await import('./commands/list.ts')).keepAwake,
  egress: async () => (await import('./commands/egress.ts')).egress,
  'egress log': async () => (await import('./commands/egress-log.ts')).log,
  'egress allow': async () => (await import('./commands/egress-log.ts')).allow,
  stats: async () => (await import('./commands/stats.ts')).stats,
  exec: async () => (await import('./commands/exec.ts')).exec,
  code: async () => (await import('./commands/code.ts')).code,
  shell: async () => (await import('./commands/shell.ts')).shell,
  logs: async () => (await import('./commands/logs.ts')).logs,
  cp: async () => (await import('./commands/cp.ts')).cp,
  url: async () => (await import('./commands/url.ts')).url,
  open: async () => (await import('./commands/url.ts')).open,
  db: async () => (await import('./commands/db.ts')).db,
  fork: async () => (await import('./commands/lifecycle.ts')).fork,
  sleep: async () => (await import('./commands/lifecycle.ts')).sleep,
  inspect: async () => (await import('./commands/lifecycle.ts')).inspect,
  wake: async () => (await import('./commands/lifecycle.ts')).wake,
  restart: async () => (await import('./commands/lifecycle.ts')).restart,
  stop: async () => (await import('./commands/lifecycle.ts')).stop,
  start: async () => (await import('./commands/lifecycle.ts')).start,
  rm: async () => (await import('./commands/lifecycle.ts')).rm,
  'stack ls': async () => (await import('./commands/stack.ts')).ls,
  'stack fork': async () => (await import('./commands/stack.ts')).fork,
  'stack rm': async () => (await import('./commands/stack.ts')).rm,
  'recipe ls': async () => (await import('./commands/recipe.ts')).ls,
  'recipe show': async () => (await import('./commands/recipe.ts')).show,
  'recipe run': async () => (await import('./commands/recipe.ts')).run,
  'secrets ls': async () => (await import('./commands/secrets.ts')).ls,
  'secrets set': async () => (await import('./commands/secrets.ts')).set,
  'secrets rm': async () => (await import('./commands/secrets.ts')).rm,
  'agents ls': async () => (await import('./commands/hosted-agents.ts')).ls,
  'agents sessions': async () => (await import('./commands/hosted-agents.ts')).sessions,
  'agents serve': async () => (await import('./commands/agents.ts')).serve,
  'agents spawn': async () => (await import('./commands/agents-spawn.ts')).spawn,
  'agents forward': async () => (await import('./commands/agents-forward.ts')).forward,
  usage: async () => (await import('./commands/records.ts')).usage,
  quota: async () => (await import('./commands/records.ts')).quota,
  audit: async () => (await import('./commands/records.ts')).audit,
  events: async () => (await import('./commands/records.ts')).events,
  keys: async () => (await import('./commands/records.ts')).keys,
  mcp: async () => (await import('./commands/mcp.ts')).mcp,
  man: async () => (await import('./commands/man.ts')).man,
  completion: async () => (await import('./commands/completion.ts')).completion,
  __complete: async () => (await import('./commands/completion.ts')).candidates,
}

export async function loadCommand(name: string): Promise<Handler> {
  const load = loads[name]
  if (!load) throw new Error(`There is no file for the command "${name}".`)
  return await load()
}
