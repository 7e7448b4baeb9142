// Units and stacks, and their copies.

import { type OperationDoc, sseExample } from './doc.ts'
import { ofRoot } from './files.ts'
import { copyOfUnit, costLine, sleepingUnit, startedAt, stoppedUnit, unit } from './values.ts'

const running =
  'The price of its size for each second that it runs; asleep and stopped it costs nothing but its volume.'
const wakes = 'Wakes a sleeping unit, which then costs the price of its size until it sleeps again.'
export const free = 'Nothing, and it wakes nothing.'

export const noCredits =
  'The policy does not allow it, the limit of concurrent units or the daily cap is met, or the team has no credits left. The message says which: GET /v1/quota shows the numbers.'
export const unitBusy =
  'The state of the unit does not allow it. The message names the state and what to call first.'
const failedInside =
  'The infrastructure failed. The unit keeps its disk: send the call again, and read `error` of the unit if it fails twice.'

export const unitDocs: Record<string, OperationDoc> = {
  unitCreate: {
    answer:
      'The new units. `outputs` has generated secrets, which only this answer shows, and `URL` if a port was published. A unit in state `creating` was not ready within `waitTimeoutMs`: read it by GET /v1/units/{id}.',
    cost: running,
    errors: {
      402: noCredits,
      404: 'There is no recipe of that name: GET /v1/recipes lists them.',
      409: 'The name is taken in its stack. Send another, or destroy the unit that has it.',
      502: 'The image could not be pulled, or the unit did not become ready; the message has the reason and the last lines of its log. A unit that failed stays in state `error` for an hour, where its field `error` can be read again.',
    },
    request: {
      spec: {
        name: 'web',
        image: 'node:22',
        cmd: ['node', '/app/main.js'],
        ports: [3000],
        env: { NODE_ENV: 'production', API_KEY: { secret: 'API_KEY', value: 'k-123' } },
        files: { '/app/main.js': 'require("http").createServer((_, a) => a.end("hello")).listen(3000)' },
        sleep: '30m',
      },
      stack: 'shop',
      expose: 'public',
    },
    response: { units: [unit], outputs: { URL: unit.endpoints[0]?.url }, recipe: null, costLine },
  },
  unitList: {
    answer:
      'A page of units. Send `next` as `cursor` for the page after it; null means that this is the last.',
    cost: free,
    errors: { 404: 'There is no stack of that id or name: GET /v1/stacks lists them.' },
    response: { units: [unit], next: null },
  },
  unitSummary: {
    answer:
      'The number of matching units, also by state, and what they cost an hour in their current states.',
    cost: free,
    errors: { 404: 'There is no stack of that id or name: GET /v1/stacks lists them.' },
    response: {
      byState: {
        creating: 0,
        running: 2,
        stopping: 0,
        stopped: 1,
        sleeping: 14,
        starting: 0,
        destroying: 0,
        destroyed: 0,
        error: 0,
      },
      centsPerHour: 1,
      total: 17,
    },
  },
  unitGet: {
    answer: 'The unit as it is now.',
    cost: free,
    response: unit,
  },
  unitChange: {
    answer: 'The unit with its labels and its end as they are now.',
    cost: free,
    errors: { 409: 'The unit has failed or is destroyed: nothing of it can be changed.' },
    request: { metadata: { app: 'shop', user: '7' }, timeToLive: '2h', atEnd: 'sleep' },
    response: {
      ...unit,
      metadata: { app: 'shop', user: '7' },
      timeToLive: '2h',
      atEnd: 'sleep',
      endsAt: '2026-05-04T11:20:00.000Z',
    },
  },
  unitDestroy: {
    answer: 'The unit in state `destroyed`. Its disk, volume, URL and name are gone for good.',
    cost: 'Ends all costs of the unit.',
    errors: {
      502: 'The host could not end it yet. The service tries again by itself; send the call again to learn the result.',
    },
    response: { ...unit, state: 'destroyed', endpoints: [], sleepsAt: null },
  },
  unitExec: {
    answer:
      'The exit code, and the first megabyte of each stream. An exit code other than 0 is a result, not an error.',
    cost: wakes,
    errors: {
      402: noCredits,
      409: 'The unit is stopped, failed or still being created, or was stopped while the command ran. Start it by POST /v1/units/{id}/start, or wait until its state is `running`.',
      502: 'The command could not be run. If its program is not there, the answer is 200 with exit code 127 instead.',
    },
    request: { cmd: ['sh', '-c', 'node --version; ls'], cwd: '/app', env: { CI: '1' }, timeoutMs: 30_000 },
    response: { exitCode: 0, stdout: 'v22.4.0\nmain.js\n', stderr: '', timedOut: false, truncated: false },
    events: sseExample([
      { event: 'stdout', data: { data: 'v22.4.0\nmain.js\n' } },
      { event: 'exit', data: { exitCode: 0, timedOut: false, truncated: false } },
    ]),
  },
  unitLogs: {
    answer:
      'Lines of standard output and error, oldest first. Send `next` as `since` for the lines after these. The log keeps the newest 16 MB.',
    cost: free,
    response: {
      lines: [{ at: startedAt, stream: 'stdout', text: 'listening on 3000' }],
      next: 'eyJzZXEiOjF9',
    },
    events: sseExample([
      {
        event: 'line',
        id: 'eyJzZXEiOjF9',
        data: { at: startedAt, stream: 'stdout', text: 'listening on 3000' },
      },
    ]),
  },
  unitFileWrite: {
    answer: 'What the unit has on its disk now. `verified` says that the unit read the same bytes back.',
    cost: wakes,
    errors: { 409: unitBusy, 502: failedInside },
    request: { path: '/app/config.json', contentBase64: 'eyJkZWJ1ZyI6dHJ1ZX0=' },
    response: {
      path: '/app/config.json',
      bytes: 14,
      sha256: '5d5b09f6dcb2d53a5fffc60c4ac0d55fabdf556069d6631545f42aa6e3500f2e',
      verified: true,
    },
  },
  unitFileWriteBytes: {
    request: 'the bytes of the file',
    answer: 'What the unit has on its disk now. `verified` says that the unit read the same bytes back.',
    cost: wakes,
    errors: { 409: unitBusy, 502: failedInside },
    response: {
      path: '/app/logo.png',
      bytes: 4021,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      verified: true,
    },
  },
  unitFileRead: {
    answer: 'The file in base64.',
    cost: wakes,
    errors: {
      404: 'There is no such unit, or no such file in it. List a directory by POST /v1/units/{id}/exec with `ls`.',
      409: unitBusy,
      502: failedInside,
    },
    response: { path: '/app/config.json', contentBase64: 'eyJkZWJ1ZyI6dHJ1ZX0=' },
  },
  unitDirectoryList: {
    answer: 'A page of the entries of the directory. Send `next` as `after` for the entries after these.',
    cost: wakes,
    errors: {
      404: 'There is no such unit, or nothing at that path in it.',
      409: unitBusy,
      502: failedInside,
    },
    response: {
      path: '/app',
      entries: [
        { name: 'main.js', type: 'file', mode: '0644', bytes: 4021, modifiedAt: startedAt, ...ofRoot },
        {
          name: 'node_modules',
          type: 'directory',
          mode: '0755',
          bytes: 4096,
          modifiedAt: startedAt,
          ...ofRoot,
        },
      ],
      next: null,
      truncated: false,
    },
  },
  unitFileDelete: {
    answer: 'The deleted path.',
    cost: wakes,
    errors: {
      404: 'There is no such unit, or nothing at that path in it.',
      409: 'The directory is not empty: send `recursive=true`. Or it took too long and only part of it is deleted: send the call again. Or the state of the unit does not allow it.',
      502: failedInside,
    },
    response: { path: '/app/cache' },
  },
  unitArchiveRead: {
    answer: 'The archive, streamed. For a file, an archive with that file only.',
    cost: wakes,
    errors: {
      404: 'There is no such unit, or nothing at that path in it.',
      409: unitBusy,
      502: failedInside,
    },
    response: 'the bytes of the archive',
  },
  unitArchiveWrite: {
    request: 'the bytes of the archive',
    answer:
      'All of the archive is unpacked. Where an entry could not be, such as a device, the answer is 400 with its name, and the others are.',
    cost: wakes,
    errors: {
      409: 'The disk is full, the unit ended during the call, or its state does not allow it. Part of the archive may be unpacked.',
      502: 'The infrastructure failed. Part of the archive may be unpacked: send the call again.',
    },
    response: { path: '/app', bytes: 10_240 },
  },
  unitExpose: {
    answer: 'The address. `warning` names a side effect, such as a restart of the unit.',
    cost: wakes,
    errors: {
      402: noCredits,
      409: 'The state of the unit does not allow it, or the unit declares ports and this is not one of them.',
      502: failedInside,
    },
    request: { port: 3000, mode: 'public' },
    response: { url: 'https://web-k3v9q2.units.example.com/', mode: 'public', port: 3000 },
  },
  unitStop: {
    answer: 'The unit in state `stopped`. It keeps its disk and its address, and visits do not wake it.',
    cost: 'Ends the cost of its size; its volume costs until the unit is destroyed.',
    errors: { 409: unitBusy, 502: failedInside },
    response: stoppedUnit,
  },
  unitStart: {
    answer: 'The unit in state `running`. A unit that runs already is left as it is; a sleeping one wakes.',
    cost: running,
    errors: { 402: noCredits, 409: unitBusy, 502: failedInside },
    response: unit,
  },
  unitSleep: {
    answer: 'The unit, or every unit of its stack, with the new window.',
    cost: 'A sleeping unit costs nothing but its volume.',
    errors: {
      402: 'The window is longer than `maxSleep` of the policy or the plan allows: GET /v1/quota shows it.',
      409: 'A command, a transfer or a visit is in progress, so the unit cannot sleep at once. Send the call again when it has ended, or stop the unit.',
      502: failedInside,
    },
    request: { sleep: '10m', now: true },
    response: { units: [{ ...sleepingUnit, sleep: '10m' }] },
  },
  unitFork: {
    answer: 'The copy, and what was copied: `memory` (with the disk), `disk`, or `config` only.',
    cost: 'The copy costs what any unit of its size costs. Blocks of the disk are shared until one of the two changes them.',
    errors: {
      402: noCredits,
      409: 'The source is still being created or has failed, or the name is taken.',
      502: 'The copy could not be made. Nothing of it is left, and the source continues. Send the call again.',
    },
    request: { name: 'web-2' },
    response: {
      units: [copyOfUnit],
      copied: { 'web-2': 'disk' },
      outputs: {},
      stack: 'shop',
      skipped: [],
      costLine,
    },
  },
}
