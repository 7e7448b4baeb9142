// The texts and examples of background processes in the OpenAPI document.

import { type OperationDoc, sseExample } from './doc.ts'
import { ids, startedAt } from './values.ts'

const wakes = 'Wakes a sleeping unit, which then costs the price of its size until it sleeps again.'
const free = 'Nothing, and it wakes nothing.'
const noUnit = 'The unit is destroyed, and so are its processes.'
const noProcess = 'There is no such unit, or it has no such process: GET /v1/units/{id}/processes lists them.'
const failedInside =
  'The infrastructure failed. Read the state of the process before you send the call again.'
const noCredits =
  'The unit sleeps and may not wake: the policy, the daily cap or the credits do not allow it. GET /v1/quota shows the numbers.'

const process = {
  id: 'proc_01jtcnx5b6n7m8k9j0h1g2f3d4',
  unitId: ids.unit,
  cmd: ['npm', 'run', 'build'],
  cwd: '/app',
  keepsAwake: true,
  tag: 'build',
  takesInput: false,
  awakeUntil: '2026-05-04T10:03:58.120Z',
  state: 'running',
  exitCode: null,
  pid: 42,
  startedAt,
  endedAt: null,
  output: { from: 0, to: 0 },
}

const ended = {
  ...process,
  awakeUntil: null,
  state: 'exited',
  exitCode: 0,
  endedAt: '2026-05-04T09:04:10.300Z',
  output: { from: 0, to: 18_432 },
}

export const processDocs: Record<string, OperationDoc> = {
  processStart: {
    answer:
      'The running process. GET /v1/units/{id}/processes/{processId} reports its end: `exitCode` 127 if there is no such program.',
    cost: `${wakes} With \`keepsAwake\` it stays awake while the process runs, for an hour at most.`,
    errors: {
      402: noCredits,
      409: 'The state of the unit does not allow it, or the limit of running processes is reached: end one by DELETE /v1/units/{id}/processes/{processId}.',
      502: 'The process could not be started. GET /v1/units/{id}/processes shows whether it runs.',
    },
    request: { cmd: ['npm', 'run', 'build'], cwd: '/app', env: { CI: '1' }, keepsAwake: true, tag: 'build' },
    response: process,
  },
  processList: {
    answer: 'Up to 64 processes. A new one replaces the one that ended first.',
    cost: free,
    errors: { 409: noUnit, 502: failedInside },
    response: { processes: [ended, process] },
  },
  processTable: {
    answer: 'What runs in the unit now, without what the service itself runs in it.',
    cost: wakes,
    errors: { 402: noCredits, 409: 'The unit is stopped, failed or still being created.', 502: failedInside },
    response: {
      processes: [
        {
          pid: 1,
          parentPid: 0,
          uid: 0,
          user: 'root',
          state: 'S',
          cmd: ['node', '/app/main.js'],
          processId: null,
          tag: null,
        },
      ],
      truncated: false,
    },
  },
  processSignalPid: {
    answer: 'The signal was sent.',
    cost: wakes,
    errors: {
      402: noCredits,
      404: 'There is no such unit, or no such process runs in it: GET /v1/units/{id}/process-table lists them.',
      409: 'The unit is stopped, failed or still being created.',
      502: failedInside,
    },
    request: { signal: 'INT' },
    response: { pid: 42 },
  },
  processRead: {
    answer:
      'The process. A `running` one is paused while its unit sleeps; a `lost` one ended with a run of the unit: start it again.',
    cost: free,
    errors: {
      404: noProcess,
      409: noUnit,
      502: failedInside,
    },
    response: ended,
  },
  processOutput: {
    events: sseExample([
      { event: 'stdout', id: '12', data: { data: 'building…\n' } },
      { event: 'end', data: { state: 'exited', exitCode: 0 } },
    ]),
    answer:
      'Both streams in the order in which they were printed. Send `next` as `after` for the output after this; `dropped` counts bytes that were already deleted.',
    cost: free,
    errors: {
      404: noProcess,
      409: noUnit,
      502: failedInside,
    },
    response: {
      output: [
        { stream: 'stdout', data: 'building…\n' },
        { stream: 'stderr', data: 'warning: 2 unused files\n' },
      ],
      next: 36,
      dropped: 0,
      state: 'running',
      exitCode: null,
    },
  },
  processSignal: {
    answer:
      'The process right after the signal. If the signal ends it, that may take a moment: read it again.',
    cost: wakes,
    errors: {
      402: noCredits,
      404: noProcess,
      409: 'The process has ended, or the state of the unit does not allow it.',
      502: failedInside,
    },
    request: { signal: 'INT' },
    response: process,
  },
  processInput: {
    answer:
      'How much was written. A process that does not read leaves room for 64 KB: what has no room after five seconds was not written, and the input not ended.',
    cost: wakes,
    errors: {
      402: noCredits,
      404: noProcess,
      409: 'The process has ended or takes no input, or the state of the unit does not allow it.',
      502: failedInside,
    },
    request: { data: 'yes\n' },
    response: { taken: 4 },
  },
  processKeepAwake: {
    answer: 'The process: `awakeUntil` says until when it keeps the unit awake.',
    cost: `${wakes} The unit is billed as usual while it is awake.`,
    errors: {
      402: noCredits,
      404: noProcess,
      409: 'The process has ended, or the state of the unit does not allow it.',
      502: failedInside,
    },
    request: { forMs: 600_000 },
    response: process,
  },
  processDelete: {
    answer: 'The process as it was. It and its descendants are killed, and its output is deleted.',
    cost: `Nothing, unless it runs in a unit that sleeps: ${wakes.charAt(0).toLowerCase()}${wakes.slice(1)}`,
    errors: {
      402: noCredits,
      404: 'There is no such unit, or it has no such process any more.',
      409: 'The state of the unit does not allow it.',
      502: failedInside,
    },
    response: ended,
  },
}
