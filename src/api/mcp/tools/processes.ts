// Tools for background commands, which run_command starts.

import { z } from 'zod'
import { strict, text } from '../../../contract/fields.ts'
import { type Process, type ProcessList, processSignalSchema } from '../../../contract/process.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { cleanLine } from '../clean.ts'
import { count, fence, newMark } from '../fence.ts'
import { gatherProcessOutput, type ProcessPrinted } from '../output.ts'
import { defineTool, hints, recordResult, textResult, type Tool } from '../tool.ts'
import { maxOutputArgument, unitArgument } from './arguments.ts'

const COMMAND_LENGTH = 200

const processArgument = text(64).describe('Its id.')

const readProcess = defineTool({
  name: 'read_process',
  title: 'Look at background commands',
  description: 'State and output of a background command. Without process: all of the unit.',
  input: strict({
    unit: unitArgument,
    process: processArgument.optional(),
    after: z.int().min(0).default(0).describe('"next" of the answer before.'),
    wait_seconds: z.int().min(0).max(300).default(0).describe('Wait for its end.'),
    max_output: maxOutputArgument,
  }),
  hints: hints.reads,
  operation: ({ process }) =>
    process === undefined
      ? 'GET /v1/units/{id}/processes'
      : 'GET /v1/units/{id}/processes/{processId}/output',
  target: ['unit', 'process'],
  ask: async (app, caller, { unit, process, after, wait_seconds }) => {
    const { id } = await locateUnit(app, caller, unit)
    if (process === undefined) return { params: { id } }
    return {
      params: { id, processId: process },
      query: { after: String(after), follow: 'true', followMs: String(wait_seconds * 1000) },
    }
  },
  gather: async (stream, { after, max_output }, watch) =>
    await gatherProcessOutput(stream, { after, most: max_output }, watch),
  result: (told: ProcessPrinted | ProcessList, { unit }) => {
    if ('processes' in told) {
      const processes = told.processes.map(processRecord)
      return recordResult({
        processes,
        next: processes.length > 0 ? 'Give the id of one as process for its output.' : 'There are none.',
      })
    }
    return textResult(shown(told, unit))
  },
})

function shown({ output, state, exitCode, begin, next, dropped }: ProcessPrinted, unit: string): string {
  const head = [
    state === 'exited' ? `exit ${exitCode}` : state,
    ...(state === 'lost' ? [`it ended with its run of the unit: start it again`] : []),
    output.total === 0 ? 'no output' : `${count(output.total)} characters`,
    `next: ${next} (send it as after for what comes then)`,
    ...(dropped === 0 ? [] : [`${count(dropped)} bytes before were too old to be kept`]),
    ...(state === 'running' ? [`wait_seconds waits for its end, signal_process ends it`] : []),
  ].join(' · ')
  if (output.total === 0) return head
  const goOn = begin + Buffer.byteLength(output.head)
  return `${head}\n${fence('output', newMark(), output, `after: ${goOn} reads on there in unit ${unit}`)}`
}

const signalProcess = defineTool({
  name: 'signal_process',
  title: 'Signal a background command',
  description: 'End a background command, or send it another signal.',
  input: strict({
    unit: unitArgument,
    process: processArgument,
    signal: processSignalSchema.shape.signal,
  }),
  hints: { ...hints.destroys, idempotentHint: false },
  operation: 'POST /v1/units/{id}/processes/{processId}/signal',
  target: ['unit', 'process'],
  ask: async (app, caller, { unit, process, signal }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id, processId: process },
    body: { signal },
  }),
  result: (process: Process) => recordResult(processRecord(process)),
})

/** What an agent needs of it to go on. */
export function processRecord({ id, cmd, state, exitCode, startedAt, endedAt, output }: Process) {
  return {
    process: id,
    cmd: cleanLine(cmd.join(' '), COMMAND_LENGTH),
    state,
    ...(exitCode === null ? {} : { exitCode }),
    startedAt,
    ...(endedAt === null ? {} : { endedAt }),
    printedBytes: output.to,
  }
}

export const processTools: readonly Tool[] = [readProcess, signalProcess]
