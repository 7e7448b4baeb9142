// Commands about units.

import type { Command } from '../args.ts'
import { environment, flag, text } from './options.ts'

const user = text('USER', "Who runs it: a name or number of the unit's /etc/passwd", { short: 'u' })
const timeout = text('TIME', 'How long it may run, as 90s, 2m or 1h (2m)')
/** `mode`: what the option is called that says which public hosts. */
const rules = (mode: 'mode' | 'egress') => ({
  [mode]: text('MODE', 'Which public hosts: open, listed or none'),
  allow: text('ENTRY', 'api.github.com, *.example.com, github.com:22, preset:npm; again for more', {
    multiple: true,
  }),
  deny: text('RANGE', 'Addresses that are refused whatever allows them, as 203.0.113.0/24; again for more', {
    multiple: true,
  }),
  siblings: text('WHICH', 'Which units of the team: team, stack or none'),
})
const metadata = text('NAME=VALUE', 'A label; again for more', { multiple: true })

export const unitCommands: Command[] = [
  {
    name: 'run',
    about: 'Make a unit of an image, and run a command in it',
    usage: 'IMAGE [--] [CMD…]',
    options: {
      rm: flag('Destroys the unit when the command has ended'),
      detach: flag('Starts the command in the background and prints the name of the unit', { short: 'd' }),
      interactive: flag('Sends standard input, up to 1 MB', { short: 'i' }),
      tty: flag('Runs the command, or else a shell, in this terminal', { short: 't' }),
      name: text('NAME', 'Of the unit; else one is made of the image'),
      stack: text('NAME', 'Its stack, made if absent'),
      size: text('SIZE', 'nano, small, medium or large (small)'),
      port: text('PORT', 'A port it listens on; again for more', { short: 'p', multiple: true }),
      expose: text('MODE', 'Publishes its port: public, or private for those who have the URL'),
      env: environment,
      secret: text('VAR=NAME', 'A secret of the team, as berth secrets ls; again for more', {
        multiple: true,
      }),
      volume: text('PATH:GB', 'A disk of its own that outlives its image'),
      sleep: text('WINDOW', 'How long it may go unused: 30m, 2h, never'),
      nested: flag('Containers may run in it, with docker or buildah'),
      'time-to-live': text('TIME', 'How long it lives however much it is used: 90s, 2h'),
      'at-end': text('WHAT', 'What happens then: destroy, sleep or stop (destroy)'),
      metadata,
      ...rules('egress'),
      timeout,
    },
    args: [1, 1],
    restAfter: 1,
    examples: [
      ['run --rm berth.local/python:3.11 -- python3 -c "print(6 * 7)"', 'Prints 42 and leaves nothing'],
      ['run -it --rm berth.local/debian:12', 'A shell in a unit that is gone afterwards'],
      [
        'run --name web --port 80 --expose public docker.io/library/nginx:1',
        'A web server at a URL of its own',
      ],
    ],
  },
  {
    name: 'ls',
    about: 'Units, with their state and cost',
    usage: '[--all] [--stack NAME] [--state STATE] [--sort ORDER]',
    options: {
      all: flag('Destroyed ones too', { short: 'a' }),
      stack: text('NAME', 'Of one stack alone'),
      state: text('STATE', 'In this state, such as running; again for more', { multiple: true }),
      metadata,
      match: text('TEXT', 'With this in the name, the name of the stack, or the image'),
      sort: text('ORDER', 'name, state, cost, lastUsedAt or createdAt; with - the other way (-createdAt)'),
      quiet: flag('Ids and nothing else; --json comes before it', { short: 'q' }),
    },
    args: [0, 0],
    examples: [
      ['ls', 'What there is'],
      ['ls --state running --sort=-cost', 'What costs most'],
      ['ls -q | xargs berth rm', 'Destroys all of it'],
    ],
  },
  {
    name: 'ps',
    about: 'Background processes of a unit',
    usage: 'UNIT',
    options: {},
    args: [1, 1],
    completes: 'units',
    examples: [['ps web', 'What was started in it to go on by itself, and how it ended']],
  },
  {
    name: 'keep-awake',
    about: 'Keep a unit awake while one of its background processes runs',
    usage: 'UNIT PROCESS [TIME]',
    options: {},
    args: [2, 3],
    completes: 'units',
    examples: [
      ['keep-awake web proc_01jtcnx5b6 30m', 'From now on, an hour at most; call it again to renew it'],
      ['keep-awake web proc_01jtcnx5b6 0s', 'The unit may fall asleep again'],
    ],
  },
  {
    name: 'egress',
    about: 'What a unit may reach: shown, set while it runs, or tried',
    usage: 'UNIT [--mode …] [--allow …] [--deny …] [--siblings …] | UNIT --check HOST:PORT',
    options: {
      ...rules('mode'),
      check: text('HOST:PORT', 'Say whether it may reach this; nothing is sent there'),
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['egress web', 'The rules, and since when they are in force'],
      ['egress web --mode listed --allow preset:npm --allow api.github.com', 'These alone, from now on'],
      ['egress web --check registry.npmjs.org:443', 'Whether it may, and why'],
    ],
  },
  {
    name: 'egress log',
    about: 'What a unit reached and was refused in the last seven days, by minute',
    usage: 'UNIT [-f] [--refused]',
    options: {
      follow: flag('What comes, too, and lines that have grown', { short: 'f' }),
      refused: flag('Only what was refused'),
      lines: text('NUMBER', 'How many to begin with (100)', { short: 'n' }),
      since: text('TIME', 'Since a time, as 2026-05-04T09:00:00Z'),
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['egress log web --refused', 'Which names were refused, and how to allow one'],
      ['egress log -f web', 'Until Ctrl-C'],
    ],
  },
  {
    name: 'egress allow',
    about: 'Add to what a unit may reach',
    usage: 'UNIT NAME…',
    options: {},
    args: [2, 100],
    completes: 'units',
    examples: [
      ['egress allow web api.github.com', 'In force with the answer; refused beyond the bound of the key'],
    ],
  },
  {
    name: 'stats',
    about: 'What units use: processor, memory, processes, network and disk',
    usage: '[-f] [UNIT…]',
    options: { follow: flag('A line every two seconds, of one unit', { short: 'f' }) },
    args: [0, 1000],
    completes: 'units',
    examples: [
      ['stats', 'Of all that run; it wakes nothing'],
      ['stats -f web', 'Until Ctrl-C'],
    ],
  },
  {
    name: 'exec',
    about: 'Run a command in a unit; ends with its exit code',
    usage: 'UNIT [--] CMD…',
    options: {
      interactive: flag('Sends standard input, up to 1 MB', { short: 'i' }),
      tty: flag('In a terminal, which is this one: for editors, top and the like', { short: 't' }),
      workdir: text('DIR', 'Where it begins', { short: 'w' }),
      user,
      env: environment,
      timeout,
    },
    args: [1, 1],
    restAfter: 1,
    completes: 'units',
    examples: [
      ['exec web -- ls -la /app', 'Everything behind -- is the command'],
      ['exec web --json -- ls', 'Options before -- are those of berth'],
      ['exec -i db -- psql -U app < dump.sql', 'Reads a file of this computer'],
      ['exec -it web -- top', 'Until q'],
    ],
  },
  {
    name: 'code',
    about: 'Run code in a unit of berth.local/code, and print its value; variables stay',
    usage: "UNIT ['CODE']",
    options: {
      language: text('LANGUAGE', 'python, javascript, typescript, bash or r (python)'),
      context: text('ID', 'Of a context; else the one of the language'),
      save: text('DIR', 'Where plots go, as plot-1.png and so on; they are not shown otherwise'),
      timeout,
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['code lab 6*7', 'Prints 42; a failure prints its traceback, and ends with 1'],
      ['code lab --save . < plot.py', 'Code of a file; its plots come here'],
    ],
  },
  {
    name: 'shell',
    about: 'Open a shell in a unit',
    usage: 'UNIT [--] [CMD…]',
    options: {
      workdir: text('DIR', 'Where it begins', { short: 'w' }),
      user,
      env: environment,
      session: text('NAME', 'Goes on for ten minutes without you; the same name attaches to it again'),
    },
    args: [1, 1],
    restAfter: 1,
    completes: 'units',
    examples: [
      ['shell web', 'bash where the unit has it, else sh; until exit or Ctrl-D'],
      ['shell web --session main', 'Goes on when the connection is lost, and is there again'],
      ['shell web -- python3', 'Another command in a terminal'],
    ],
  },
  {
    name: 'logs',
    about: 'What the process of a unit printed',
    usage: '[-f] [-n 100] UNIT',
    options: {
      follow: flag('Goes on with what comes', { short: 'f' }),
      lines: text('NUMBER', 'How many to begin with (100)', { short: 'n' }),
      tail: text('NUMBER', 'The same as --lines; "all" for everything that is kept'),
      since: text('TIME', 'Since a time: 5m, 2h, or 2026-05-04T09:00:00Z'),
      timestamps: flag('With the time of each line', { short: 't' }),
    },
    args: [1, 1],
    completes: 'units',
    examples: [
      ['logs -f web', 'Until Ctrl-C, or until its run ends'],
      ['logs -n 500 web | grep ERROR', 'Its newest lines'],
      ['logs --since 5m -t web', 'The last five minutes, with times'],
    ],
  },
  {
    name: 'cp',
    about: 'Copy files and folders into a unit or out of it, up to 2 GB, as cp -r does',
    usage: 'FROM TO',
    options: {
      recursive: flag('Folders are always copied whole', { short: 'r' }),
      archive: flag('Modes are always copied', { short: 'a' }),
    },
    args: [2, 2],
    completes: 'units',
    examples: [
      ['cp main.py web:/app/main.py', 'Into it; directories on the way are made'],
      ['cp web:/app/out.json -', 'Out of it, to standard output'],
      ['cp site web:/srv', 'A folder: to /srv/site where /srv is one, else as /srv; site/. is its content'],
    ],
  },
  {
    name: 'url',
    about: 'The URL of a unit; publishes a port where none is published',
    usage: 'UNIT [PORT]',
    options: {
      public: flag('For anybody, not only for those who have the URL'),
      rotate: flag('A new address; the old one ends'),
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['url web', 'Prints what is published'],
      ['url web 8080 --public', 'Publishes a port for anybody'],
    ],
  },
  {
    name: 'open',
    about: 'Open the URL of a unit in a browser',
    usage: 'UNIT [PORT]',
    options: { public: flag('For anybody, not only for those who have the URL') },
    args: [1, 2],
    completes: 'units',
    examples: [['open web', 'Also wakes it, as each visit does']],
  },
  {
    name: 'db',
    about: 'Run the client of a database in its unit: psql, mariadb, redis-cli or mongosh',
    usage: 'CLIENT UNIT [--] [ARG…]',
    options: { interactive: flag('Sends standard input, up to 1 MB', { short: 'i' }), timeout },
    args: [2, 2],
    restAfter: 2,
    passesOptions: true,
    examples: [
      ['db psql shop -c "select count(*) from orders"', 'As the user and in the database of its recipe'],
      ['db -i psql shop < schema.sql', 'Reads a file of this computer'],
      ['db redis-cli cache get greeting', 'With the password of its recipe'],
    ],
  },
  {
    name: 'fork',
    about: 'Copy a unit as it is now',
    usage: 'UNIT [--name NAME] [--stack NAME]',
    options: { name: text('NAME', 'Of the copy'), stack: text('NAME', 'Its stack') },
    args: [1, 1],
    completes: 'units',
    examples: [['fork web --name web-try', 'With its disk, and with its memory where its class can']],
  },
  {
    name: 'sleep',
    about: 'Change how long a unit may go unused, or put it to sleep now',
    usage: 'UNIT WINDOW | UNIT --now',
    options: {
      now: flag('It sleeps at once, and wakes on its next use'),
      stack: flag('All units of its stack, which then sleep and wake together'),
    },
    args: [1, 2],
    completes: 'units',
    examples: [
      ['sleep web 2h', 'It sleeps two hours after its last use'],
      ['sleep web never', 'It stays awake'],
      ['sleep web --now', 'Its window stays as it is'],
    ],
  },
  several('inspect', 'Everything about units, as JSON', 'State, image, ports, endpoints, cost, last exit'),
  several('wake', 'Wake sleeping units', 'A use does the same: a command, a visit, a connection'),
  several('restart', 'End the processes of units and run them again', 'With the same disk and address'),
  several('stop', 'End the processes of units and keep their disks', 'Only `berth start` runs it again'),
  several('start', 'Run stopped units again', 'A sleeping one wakes by itself, on its next use'),
  several('rm', 'Destroy units, with their disks', 'For good', {
    force: flag('A unit that does not exist is no error', { short: 'f' }),
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
