// Commands about units.

import type { Command } from '../args.ts'
import { environment, flag, intoStack, since, sleepAfter, text } from './options.ts'

const forEverybody = flag('Publish for everybody, not only for those who have the URL')
const interactive = flag('Send standard input, up to 1 MB', { short: 'i' })
const lines = text('NUMBER', 'Number of lines to begin with (default 100)', { short: 'n' })
const READS_FILE = 'Reads a file on this computer'
const user = text('USER', 'Run as this user: a name or a number', { short: 'u' })
const timeout = text('TIME', 'Kill the command after this time: 90s, 2m, 1h (default 2m)')
/** `mode`: what the option is called that says which public hosts. */
const rules = (mode: 'mode' | 'egress') => ({
  [mode]: text('MODE', 'Public hosts it may reach: open (all), listed or none'),
  allow: text(
    'ENTRY',
    'Allow a host: api.github.com, *.example.com, github.com:22, preset:npm; may be repeated',
    {
      multiple: true,
    },
  ),
  deny: text('RANGE', 'Always refuse these addresses, such as 203.0.113.0/24; may be repeated', {
    multiple: true,
  }),
  siblings: text('WHICH', 'Units it may reach: of the whole team, of its stack, or none'),
})
const metadata = text('NAME=VALUE', 'A label; may be repeated', { multiple: true })

export const unitCommands: Command[] = [
  {
    name: 'run',
    about: 'Create a unit from an image, and run a command in it',
    usage: 'IMAGE [--] [CMD…]',
    options: {
      rm: flag('Destroy the unit when the command has ended'),
      detach: flag('Start the command in the background and print the name of the unit', { short: 'd' }),
      interactive,
      tty: flag('Attach this terminal to the command, or to a shell', { short: 't' }),
      name: text('NAME', 'Name of the unit (default: made from the image)'),
      stack: intoStack,
      size: text('SIZE', 'nano, small, medium or large (default small)'),
      port: text('PORT', 'A port it listens on; may be repeated', { short: 'p', multiple: true }),
      expose: text('MODE', 'Publish its port: public, or private for those who have the URL'),
      env: environment,
      secret: text('VAR=NAME', 'Use a secret of the team (see berth secrets ls); may be repeated', {
        multiple: true,
      }),
      volume: text('PATH:GB', 'A disk of its own at this path, such as /data:10'),
      sleep: sleepAfter,
      nested: flag('Allow docker or buildah in the unit'),
      'time-to-live': text('TIME', 'End the unit after this time, used or not: 90s, 2h'),
      'at-end': text('WHAT', 'What to do at that time: destroy, sleep or stop (default destroy)'),
      metadata,
      ...rules('egress'),
      timeout,
    },
    args: [1, 1],
    restAfter: 1,
    examples: [
      ['run --rm berth.local/python:3.11 -- python3 -c "print(6 * 7)"', 'Prints 42 and leaves nothing'],
      ['run -it --rm berth.local/debian:12', 'A shell in a unit that is destroyed afterwards'],
      ['run --name web --port 80 --expose public docker.io/library/nginx:1', 'A web server at its own URL'],
    ],
  },
  {
    name: 'ls',
    about: 'List units with their state and cost',
    usage: '[--all] [--stack NAME] [--state STATE] [--sort ORDER]',
    options: {
      all: flag('Include destroyed units', { short: 'a' }),
      stack: text('NAME', 'Only units of this stack'),
      state: text('STATE', 'Only units in this state, such as running; may be repeated', { multiple: true }),
      metadata,
      match: text('TEXT', 'Only units with this text in the name, the stack or the image'),
      sort: text(
        'ORDER',
        'name, state, cost, lastUsedAt or createdAt; with - descending (default -createdAt)',
      ),
      quiet: flag('Print only ids; --json takes precedence', { short: 'q' }),
    },
    args: [0, 0],
    examples: [
      ['ls', 'All units of the team'],
      ['ls --state running --sort=-cost', 'Running units, the most expensive first'],
      ['ls -q | xargs berth rm', 'Destroys all units'],
    ],
  },
  {
    name: 'ps',
    about: 'List the background processes of a unit',
    usage: 'UNIT',
    options: {},
    args: [1, 1],
    completes: 'units',
    examples: [['ps web', 'Each with its state and exit code']],
  },
  {
    name: 'keep-awake',
    about: 'Keep a unit awake while one of its background processes runs',
    usage: 'UNIT PROCESS [TIME]',
    options: {},
    args: [2, 3],
    completes: 'units',
    examples: [
      ['keep-awake web proc_01jtcnx5b6 30m', 'For 30 minutes from now; at most an hour, and may be renewed'],
      ['keep-awake web proc_01jtcnx5b6 0s', 'The unit may fall asleep again'],
    ],
  },
  {
    name: 'egress',
    about: 'Show, change or test which hosts a unit may reach',
    usage: 'UNIT [--mode …] [--allow …] [--deny …] [--siblings …] | UNIT --check HOST:PORT',
    options: {
      ...rules('mode'),
      check: text('HOST:PORT', 'Test whether it may reach this; nothing is sent'),
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['egress web', 'Its rules, and since when they apply'],
      ['egress web --mode listed --allow preset:npm --allow api.github.com', 'Only these, from now on'],
      ['egress web --check registry.npmjs.org:443', 'Whether it is allowed, and by which rule'],
    ],
  },
  {
    name: 'egress log',
    about: 'Show the connections of a unit of the last seven days, by minute',
    usage: 'UNIT [-f] [--refused]',
    options: {
      follow: flag('Follow the log', { short: 'f' }),
      refused: flag('Only refused connections'),
      lines,
      since,
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['egress log web --refused', 'The names that were refused, and how to allow one'],
      ['egress log -f web', 'Until Ctrl-C'],
    ],
  },
  {
    name: 'egress allow',
    about: 'Allow a unit to reach more hosts',
    usage: 'UNIT NAME…',
    options: {},
    args: [2, 100],
    completes: 'units',
    examples: [
      ['egress allow web api.github.com', 'Applies at once; refused if your key may not reach it itself'],
    ],
  },
  {
    name: 'stats',
    about: 'Show what units use: processor, memory, processes, network and disk',
    usage: '[-f] [UNIT…]',
    options: { follow: flag('Print a line every two seconds, for one unit', { short: 'f' }) },
    args: [0, 1000],
    completes: 'units',
    examples: [
      ['stats', 'All running units; sleeping ones stay asleep'],
      ['stats -f web', 'Until Ctrl-C'],
    ],
  },
  {
    name: 'exec',
    about: 'Run a command in a unit, and exit with its code',
    usage: 'UNIT [--] CMD…',
    options: {
      interactive,
      tty: flag('Attach this terminal: for editors, top and the like', { short: 't' }),
      workdir: text('DIR', 'Working directory', { short: 'w' }),
      user,
      env: environment,
      timeout,
    },
    args: [1, 1],
    restAfter: 1,
    completes: 'units',
    examples: [
      ['exec web -- ls -la /app', 'Everything after -- is the command'],
      ['exec web --json -- ls', 'Options before -- belong to berth'],
      ['exec -i db -- psql -U app < dump.sql', READS_FILE],
      ['exec -it web -- top', 'Quit with q'],
    ],
  },
  {
    name: 'code',
    about: 'Run code in a unit of berth.local/code and print its value; variables are kept',
    usage: "UNIT ['CODE']",
    options: {
      language: text('LANGUAGE', 'python, javascript, typescript, bash or r (default python)'),
      context: text('ID', 'Use this context (default: that of the language)'),
      save: text('DIR', 'Save plots here, as plot-1.png and so on'),
      timeout,
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['code lab 6*7', 'Prints 42; an exception prints its traceback and exits with 1'],
      ['code lab --save . < plot.py', 'Runs a file and saves its plots here'],
    ],
  },
  {
    name: 'shell',
    about: 'Open a shell in a unit',
    usage: 'UNIT [--] [CMD…]',
    options: {
      workdir: text('DIR', 'Working directory', { short: 'w' }),
      user,
      env: environment,
      session: text(
        'NAME',
        'Keep the shell for ten minutes after a disconnect; the same name attaches again',
      ),
    },
    args: [1, 1],
    restAfter: 1,
    completes: 'units',
    examples: [
      ['shell web', 'bash or sh; leave it with exit or Ctrl-D'],
      ['shell web --session main', 'Survives a lost connection'],
      ['shell web -- python3', 'Another command in the terminal'],
    ],
  },
  {
    name: 'logs',
    about: 'Show the output of a unit, or of one of its background processes',
    usage: '[-f] [-n 100] UNIT',
    options: {
      process: text('ID', 'Of a background process, such as run -d starts'),
      follow: flag('Follow the log', { short: 'f' }),
      lines,
      tail: text('NUMBER', 'The same as --lines; "all" for every line'),
      since: text('TIME', 'Since a time: 5m, 2h, or 2026-05-04T09:00:00Z'),
      timestamps: flag('Show the time of each line', { short: 't' }),
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['logs -f web', 'Until Ctrl-C, or until the unit stops'],
      ['logs -n 500 web | grep ERROR', 'Its last 500 lines'],
      ['logs --since 5m -t web', 'The last five minutes, with times'],
      ['logs -f --process proc_… web', 'What a background process prints, to its end'],
    ],
  },
  {
    name: 'cp',
    about: 'Copy files and folders into a unit or out of it, up to 2 GB, as cp -r does',
    usage: 'FROM TO',
    options: {
      recursive: flag('Accepted for habit: folders are always copied whole', { short: 'r' }),
      archive: flag('Accepted for habit: modes are always kept', { short: 'a' }),
    },
    args: [2, 2],
    completes: 'units',
    examples: [
      ['cp main.py web:/app/main.py', 'Into the unit; missing folders are created'],
      ['cp web:/app/out.json -', 'Out of the unit, to standard output'],
      ['cp site web:/srv', 'A folder, to /srv/site; site/. copies only its content'],
    ],
  },
  {
    name: 'url',
    about: 'Print the URL of a unit, and publish its port if needed',
    usage: 'UNIT [PORT]',
    options: {
      public: forEverybody,
      rotate: flag('Replace the address; the old one stops working'),
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['url web', 'Prints its URL'],
      ['url web 8080 --public', 'Publishes port 8080 for everybody'],
    ],
  },
  {
    name: 'open',
    about: 'Open the URL of a unit in a browser',
    usage: 'UNIT [PORT]',
    options: { public: forEverybody },
    args: [1, 2],
    completes: 'units',
    examples: [['open web', 'Wakes it, as every visit does']],
  },
  {
    name: 'db',
    about: 'Run psql, mariadb, redis-cli or mongosh in the unit of a database',
    usage: 'CLIENT UNIT [--] [ARG…]',
    options: { interactive, timeout },
    args: [2, 2],
    restAfter: 2,
    passesOptions: true,
    examples: [
      ['db psql shop -c "select count(*) from orders"', 'With the user and database of its recipe'],
      ['db -i psql shop < schema.sql', READS_FILE],
      ['db redis-cli cache get greeting', 'With the password of its recipe'],
    ],
  },
  {
    name: 'fork',
    about: 'Copy a unit as it is now',
    usage: 'UNIT [--name NAME] [--stack NAME]',
    options: { name: text('NAME', 'Name of the copy'), stack: text('NAME', 'Stack of the copy') },
    args: [1, 1],
    completes: 'units',
    examples: [['fork web --name web-try', 'With its disk, and its memory where that is supported']],
  },
  {
    name: 'sleep',
    about: 'Change when a unit sleeps, or put it to sleep now',
    usage: 'UNIT WINDOW | UNIT --now',
    options: {
      now: flag('Sleep at once; the next use wakes it'),
      stack: flag('All units of its stack, which sleep and wake together'),
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['sleep web 2h', 'Sleeps two hours after its last use'],
      ['sleep web never', 'Never sleeps'],
      ['sleep web --now', 'Sleeps now; its setting is kept'],
    ],
  },
  several('inspect', 'Show all details of units, as JSON', 'State, image, ports, endpoints, cost, last exit'),
  several('wake', 'Wake sleeping units', 'A command, a visit or a connection does the same'),
  several('restart', 'Restart units', 'Keeps disk and address'),
  several('stop', 'Stop units and keep their disks', 'It stays stopped until `berth start`'),
  several('start', 'Start stopped units', 'A sleeping unit needs no start: the next use wakes it'),
  several('rm', 'Destroy units with their disks', 'Cannot be undone', {
    force: flag('Ignore units that do not exist', { short: 'f' }),
  }),
]

function several(name: string, about: string, does: string, options: Command['options'] = {}): Command {
  return {
    name,
    about,
    usage: 'UNIT…',
    options,
    args: [1, 1000],
    completes: 'units',
    examples: [[`${name} web`, does]],
  }
}
