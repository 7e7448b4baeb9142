// The commands about hosted agents, as data.

import type { Command } from '../args.ts'
import { environment, flag, text } from './options.ts'

/** Of the units of sessions. */
const anyUnitOptions = {
  sleep: text('WINDOW', 'How long they may go unused before they sleep (1m)'),
  'time-to-live': text('DURATION', 'How long one lives at most (24h)'),
  stack: text('STACK', 'Where they are (agents)'),
}
const unitOptions = {
  image: text('IMAGE', 'Of the units (berth.local/agent:1)'),
  size: text('SIZE', 'Of the units'),
  'copy-of': text('UNIT', 'Makes them as copies of this unit, in place of image, size and rules'),
  egress: text('RULES', 'What they may reach: none (the default), open, or hosts with commas'),
  ...anyUnitOptions,
}
const recipeUnitOptions = {
  egress: text('RULES', 'What it may reach: preset:npm (the default), open, none, or hosts with commas'),
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
      vendor: text('NAME', 'Whose agents: claude (the default)'),
      environment: text('ID', 'The self-hosted environment, such as env_01AbC'),
      'key-file': text('FILE', "The environment's key, in place of ANTHROPIC_ENVIRONMENT_KEY"),
      ...unitOptions,
      'at-once': text('NUMBER', 'How many sessions work at one time (8); others stay queued'),
      'turn-idle': text('SECONDS', 'How long a session is waited for after a turn (60)'),
      'vendor-url': text('URL', "In place of the vendor's own"),
    },
    args: [0, 0],
    examples: [
      [
        'agents serve --environment env_01AbC --key-file key.txt',
        'A unit for each session, which reaches nothing',
      ],
    ],
  },
  {
    name: 'agents spawn',
    about:
      "Run the worker of one claim in its session's unit, for a controller that starts a program for each",
    usage: '--session ID [OPTIONS] [--] CMD…',
    options: {
      session: text('ID', 'Of the session: the same has the same unit, with its disk'),
      pool: text('NAME', 'Sessions of one pool have units apart from those of another (default)'),
      'token-file': text('FILE', "The claim's token; the worker reads it from $BERTH_SESSION_TOKEN_FILE"),
      'token-env': text('NAME', 'The worker has a placeholder in this variable instead, with --token-host'),
      'token-host': text('HOST', 'Where the token goes in place of the placeholder', { multiple: true }),
      env: environment,
      rm: flag('Destroys the unit when the worker has ended; else it sleeps'),
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
      environment: text('ID', 'Of a self-hosted environment, such as env_01AbC'),
      remote: text('URL', 'Where it is registered, as the vendor answers when the session is made'),
      'key-file': text('FILE', "The environment's key, which stays here"),
      codex: text('PROGRAM', 'The Codex of this machine, which holds the relay (codex)'),
      set: text('NAME=VALUE', 'A parameter of the recipe codex-executor; again for more', { multiple: true }),
      rm: flag('Destroys the unit at the end; else it sleeps'),
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
