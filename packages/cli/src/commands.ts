// Every command, as data: help, completion and the parser use it. load-command.ts has the code of each.

import type { Command } from './args.ts'
import { agentCommands } from './described/agents.ts'
import { otherCommands } from './described/others.ts'
import { unitCommands } from './described/units.ts'

export const commands: Record<string, Command> = Object.fromEntries(
  [...unitCommands, ...agentCommands, ...otherCommands].map((command) => [command.name, command]),
)

/** For the help: each command once. */
export const groups: Record<string, string[]> = {
  Begin: ['login', 'logout', 'whoami', 'profiles'],
  Units: [
    'run',
    'ls',
    'inspect',
    'ps',
    'keep-awake',
    'stats',
    'egress',
    'egress log',
    'egress allow',
    'exec',
    'code',
    'shell',
    'logs',
    'cp',
    'url',
    'open',
    'db',
    'fork',
    'sleep',
    'wake',
    'stop',
    'start',
    'restart',
    'rm',
  ],
  'Stacks and recipes': ['stack ls', 'stack fork', 'stack rm', 'recipe ls', 'recipe show', 'recipe run'],
  Secrets: ['secrets ls', 'secrets set', 'secrets rm'],
  'Hosted agents': ['agents ls', 'agents sessions', 'agents serve'],
  'Money and records': ['usage', 'quota', 'audit', 'keys'],
  Others: ['mcp', 'completion', 'man'],
}

/** What the script of `berth completion` calls; not in the help. */
const complete: Command = {
  name: '__complete',
  about: 'Candidates for a word',
  usage: '-- WORD…',
  options: {},
  args: [0, 0],
  restAfter: 0,
  examples: [],
}

/** The command that the words begin with, and the words behind its name. */
export function findCommand(words: string[]): [Command | null, string[]] {
  const [first = '', second = ''] = words
  if (first === complete.name) return [complete, words.slice(1)]
  const two = commands[`${first} ${second}`]
  if (two) return [two, words.slice(2)]
  const one = Object.hasOwn(commands, first) ? commands[first] : undefined
  return one ? [one, words.slice(1)] : [null, words]
}
