// Tools that run commands and read a unit's log.

import { z } from 'zod'
import { strict, text } from '../../../contract/fields.ts'
import { limits } from '../../../contract/limits.ts'
import { validation } from '../../../contract/errors.ts'
import type { EgressLogLine, EgressLogPage } from '../../../contract/egress-log.ts'
import type { LogLine, LogPage } from '../../../contract/logs.ts'
import type { Process } from '../../../contract/process.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { count, fence, newMark } from '../fence.ts'
import { cutMiddle } from '../cut.ts'
import { gatherOutput, type Output } from '../output.ts'
import { defineTool, hints, recordResult, textResult, type Tool } from '../tool.ts'
import { maxOutputArgument, unitArgument } from './arguments.ts'
import { processRecord } from './processes.ts'

/** The characters of a log shown at once. */
const LOG_CHARACTERS = 40_000

const runCommand = defineTool({
  name: 'run_command',
  title: 'Run a command',
  description:
    'Run a command in a unit; get its exit code and output, long output without its middle. It is killed at timeout_seconds.',
  input: strict({
    unit: unitArgument,
    command: z.string().optional().describe('For sh -c.'),
    argv: z.array(z.string()).optional().describe('Or without a shell.'),
    stdin: z.string().optional(),
    cwd: text(limits.pathLength).optional(),
    timeout_seconds: z.int().min(1).max(3600).default(50),
    background: z.boolean().default(false).describe('Answer at once; it goes on: see read_process.'),
    max_output: maxOutputArgument,
  }),
  hints: { ...hints.destroys, idempotentHint: false, openWorldHint: true },
  operation: ({ background }) =>
    background === true ? 'POST /v1/units/{id}/processes' : 'POST /v1/units/{id}/exec',
  target: 'unit',
  ask: async (app, caller, { unit, command, argv, stdin, cwd, timeout_seconds, background }) => {
    const cmd = commandOf(command, argv)
    const { id } = await locateUnit(app, caller, unit)
    const fed = stdin === undefined ? {} : { stdin }
    if (background) {
      // Its caller waits for it elsewhere, so it must not be paused with the unit.
      return {
        params: { id },
        body: { cmd, ...fed, ...(cwd === undefined ? {} : { cwd }), keepsAwake: true },
      }
    }
    return { params: { id }, body: { cmd: within(cwd, cmd), ...fed, timeoutMs: timeout_seconds * 1000 } }
  },
  gather: async (stream, { max_output }, watch) => await gatherOutput(stream, max_output, watch),
  result: (output: Output | Process, { timeout_seconds }, { elapsedMs }) => {
    if ('unitId' in output) return recordResult({ ...processRecord(output), next: nextOf(output) })
    const mark = newMark()
    const hint = 'send it to a file and read_file that, or print less, as with "| sed -n 200,400p"'
    const streams = (['stdout', 'stderr'] as const).flatMap((name) => {
      const { total } = output[name]
      if (total === 0) return []
      return [fence(name === 'stdout' ? 'output' : 'stderr', mark, output[name], hint)]
    })
    return textResult([headOf(output, timeout_seconds, elapsedMs), ...streams].join('\n'))
  },
})

function headOf({ exitCode, timedOut, stdout, stderr }: Output, timeoutS: number, elapsedMs: number): string {
  const characters = stdout.total + stderr.total
  const size = characters === 0 ? 'no output' : `${count(characters)} characters`
  const head = `exit ${exitCode} after ${(elapsedMs / 1000).toFixed(1)} s · ${size}`
  if (timedOut) {
    return `${head} · killed after ${timeoutS} s: send it again with "background": true, and read_process waits for its end; or give a larger timeout_seconds`
  }
  if (exitCode === 127)
    return `${head} · 127 means that there is no such program in the unit, or no sh: then use argv`
  return head
}

function nextOf({ id }: Process): string {
  return `It goes on in the background, and keeps the unit awake for an hour at most. read_process with process "${id}" tells its output, and with wait_seconds waits for its end; signal_process ends it.`
}

function commandOf(command: string | undefined, argv: string[] | undefined): string[] {
  if (command !== undefined && argv !== undefined) {
    throw validation([{ path: 'argv', message: 'give either command or argv, not both' }])
  }
  if (command !== undefined) return ['sh', '-c', command]
  if (argv !== undefined && argv.length > 0) return argv
  throw validation([{ path: 'command', message: 'is required, such as "ls -la /app"; or give argv' }])
}

/** The shell gets the directory and the arguments as parameters, never inside its script. */
function within(cwd: string | undefined, argv: string[]): string[] {
  return cwd === undefined ? argv : ['sh', '-c', 'cd -- "$0" && exec "$@"', cwd, ...argv]
}

const readLogs = defineTool({
  name: 'read_logs',
  title: 'Read logs',
  description:
    "The newest lines that the unit's own process printed. With egress, what it reached and was refused instead: for a host that it does not find.",
  input: strict({
    unit: unitArgument,
    lines: z.int().min(1).max(500).default(100),
    since: text(200).optional().describe('"next" of the answer before, or an ISO time.'),
    egress: z.boolean().default(false),
  }),
  hints: hints.reads,
  operation: ({ egress }) => (egress === true ? 'GET /v1/units/{id}/egress/log' : 'GET /v1/units/{id}/logs'),
  target: 'unit',
  ask: async (app, caller, { unit, lines, since }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id },
    query: { limit: String(lines), ...(since === undefined ? {} : { since }) },
  }),
  result: ({ lines, next }: LogPage | EgressLogPage, { unit }) => {
    const shown = lines.map((line) => ('stream' in line ? printedLine(line) : egressLine(line))).join('\n')
    const head = lines.length === 0 ? 'no lines' : `${count(lines.length)} lines, oldest first`
    const goOn = next === null ? '' : ` · next: ${next} (send it as since for what comes after)`
    if (lines.length === 0) return textResult(`${head}${goOn}`)
    const cut = cutMiddle(shown, LOG_CHARACTERS)
    const ask = whomToAsk(unit, lines)
    return textResult(`${head}${goOn}\n${ask}${fence('logs', newMark(), cut, 'ask for fewer lines')}`)
  },
})

function printedLine({ at, stream, text }: LogLine): string {
  return `${at} ${stream === 'stderr' ? 'err ' : ''}${text}`
}

function egressLine({ at, decision, host, port, count: times, reason }: EgressLogLine): string {
  return `${at} ${decision} ${host ?? 'no name'}${port === null ? '' : `:${port}`} ×${times} ${reason}`
}

/** No tool widens what a unit may reach: that is for people. The names are in the form in which they are compared. */
function whomToAsk(unit: string, lines: (LogLine | EgressLogLine)[]): string {
  const entries = lines.flatMap((line) => ('entry' in line && line.entry !== null ? [line.entry] : []))
  const newest = [...new Set(entries.toReversed())].slice(0, 5)
  if (newest.length === 0) return ''
  return `To be allowed to reach ${newest.join(', ')}, ask the person you work for: the page Egress of the unit in the dashboard, or "berth egress allow ${unit} ${newest[0]}".\n`
}

export const commandTools: readonly Tool[] = [runCommand, readLogs]
