// Every command, as data: help, completion and the parser use it. load-command.ts has the code of each.

import { type Command, globalOptions } from './args.ts'
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
  'Money and records': ['usage', 'quota', 'audit', 'events', 'keys'],
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

/**
 * The command that the words begin with, and the words behind its name. Options of every command may stand before it:
 * `berth --json ls`.
 */
export function findCommand(words: string[]): [Command | null, string[]] {
  const at = ownOptions(words)
  const [first = '', second = ''] = words.slice(at)
  const [lead, left] = [words.slice(0, at), words.slice(at)]
  if (first === complete.name) return [complete, left.slice(1)]
  const two = commands[`${first} ${second}`]
  if (two) return [two, [...lead, ...left.slice(2)]]
  const one = Object.hasOwn(commands, first) ? commands[first] : undefined
  if (one) return [one, [...lead, ...left.slice(1)]]
  return [null, left.length === 0 ? [] : [...left, ...lead]]
}

/** How many words before the command are options, and their values. */
function ownOptions(words: string[]): number {
  let at = 0
  for (;;) {
    const [name = '', value] = (words[at] ?? '').split('=')
    const option = name.startsWith('--') ? globalOptions[name.slice(2)] : undefined
    if (option === undefined || name === '--help') return at
    at += option.type === 'string' && value === undefined ? 2 : 1
  }
}
