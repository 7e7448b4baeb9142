// The commands about hosted agents, as data.

import type { Command } from '../args.ts'
import { environment as variable, flag, text } from './options.ts'

const environment = text('ID', 'The self-hosted environment, such as env_01AbC')
/** Of the units of sessions. */
const anyUnitOptions = {
  sleep: text('WINDOW', 'Sleep after this time without use (default 1m)'),
  'time-to-live': text('DURATION', 'Destroy a unit after this time, used or not (default 24h)'),
  stack: text('STACK', 'Stack of the units (default agents)'),
}
const unitOptions = {
  image: text('IMAGE', 'Image of the units (default berth.local/agent:1)'),
  size: text('SIZE', 'Size of the units'),
  'copy-of': text('UNIT', 'Copy this unit, with its image, size and rules'),
  egress: text('RULES', 'Hosts they may reach: none (default), open, or a list with commas'),
  ...anyUnitOptions,
}
const recipeUnitOptions = {
  egress: text('RULES', 'Hosts it may reach: preset:npm (default), open, none, or a list with commas'),
  ...anyUnitOptions,
}

export const agentCommands: Command[] = [
  {
    name: 'agents ls',
    about: 'List the environments whose hosted agents work here',
    usage: '',
    options: {},
    args: [0, 0],
    examples: [['agents ls', 'Each with its state and last error']],
  },
  {
    name: 'agents sessions',
    about: 'List the sessions of an environment',
    usage: 'ENVIRONMENT',
    options: {},
    args: [1, 1],
    examples: [['agents sessions env_01AbC', 'With their turns, units and costs']],
  },
  {
    name: 'agents serve',
    about: "Let the sessions of a vendor's hosted agents work in units, until Ctrl-C",
    usage: '--environment ID --key-file FILE [OPTIONS]',
    options: {
      vendor: text('NAME', 'Vendor of the agents: claude (default)'),
      environment,
      'key-file': text('FILE', "File with the environment's key (default: ANTHROPIC_ENVIRONMENT_KEY)"),
      ...unitOptions,
      'at-once': text('NUMBER', 'Sessions at one time; others wait (default 8)'),
      'turn-idle': text('SECONDS', 'Wait so long for the next turn of a session (default 60)'),
      'vendor-url': text('URL', 'Address of the vendor (default: its own)'),
    },
    args: [0, 0],
    examples: [
      ['agents serve --environment env_01AbC --key-file key.txt', 'A unit for each session, without network'],
    ],
  },
  {
    name: 'agents spawn',
    about:
      "Run the worker of one claim in its session's unit, for a controller that starts a program for each",
    usage: '--session ID [OPTIONS] [--] CMD…',
    options: {
      session: text('ID', 'Session; the same one gets the same unit and disk'),
      pool: text('NAME', 'Pool; sessions of different pools share no units (default: default)'),
      'token-file': text('FILE', "The claim's token; the worker reads it from $BERTH_SESSION_TOKEN_FILE"),
      'token-env': text('NAME', 'The worker has a placeholder in this variable instead, with --token-host'),
      'token-host': text('HOST', 'Send the token only to this host', { multiple: true }),
      env: variable,
      rm: flag('Destroy the unit when the worker has ended; else it sleeps'),
      ...unitOptions,
    },
    args: [0, 0],
    restAfter: 0,
    examples: [
      [
        'agents spawn --session "$ID" --token-file "$FILE" --egress api.example.com -- worker run',
        'In a hook; ends with the exit code of the worker, or 75 when there is no room',
      ],
    ],
  },
  {
    name: 'agents forward',
    about: "Let an environment of OpenAI's Agents API work in a unit, until Ctrl-C",
    usage: '--environment ID --remote URL --key-file FILE [OPTIONS]',
    options: {
      environment,
      remote: text('URL', 'Where it is registered, as the vendor answers when the session is made'),
      'key-file': text('FILE', "The environment's key, which stays here"),
      codex: text('PROGRAM', 'The Codex of this machine, which holds the relay (codex)'),
      set: text('NAME=VALUE', 'Set a parameter of the recipe codex-executor; may be repeated', {
        multiple: true,
      }),
      rm: flag('Destroy the unit at the end; else it sleeps'),
      ...recipeUnitOptions,
    },
    args: [0, 0],
    examples: [
      [
        'agents forward --environment env_01AbC --remote https://api.example.com/v1 --key-file key.txt',
        'The unit has no key, and no way to the vendor',
      ],
    ],
  },
]
