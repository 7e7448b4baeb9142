// Tools that create, list, read, start, stop and delete units.

import { z } from 'zod'
import type { App } from '../../../app.ts'
import type { EgressAsked } from '../../../contract/egress.ts'
import { strict, text } from '../../../contract/fields.ts'
import { limits } from '../../../contract/limits.ts'
import { sizes } from '../../../contract/policy.ts'
import { validation } from '../../../contract/errors.ts'
import type { RunResult } from '../../../contract/run-result.ts'
import type { Unit, UnitList } from '../../../contract/unit.ts'
import type { Caller } from '../../../domain/credentials/caller.ts'
import { creationStep } from '../../../domain/units/creation-step.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { type Asked, defineTool, hints, recordResult, type Tool, type ToolResult } from '../tool.ts'
import {
  cursorArgument,
  exposeArgument,
  nameArgument,
  onUnit,
  sleepArgument,
  unitArgument,
  waitArgument,
  waitFor,
} from './arguments.ts'
import { nextOf, unitRecord, unitRecordSchema, unitsRecordSchema } from './records.ts'

const PAGE = 20

const secretArgument = strict({
  secret: z.string(),
  value: z.string().optional().describe('Left out, one is generated.'),
})

const teamSecretArgument = strict({ teamSecret: z.string() })
const envForms =
  'must be a string, { "secret": NAME }, { "secret": NAME, "value": VALUE } or { "teamSecret": NAME }'

const volumeArgument = strict({ mount: z.string().describe('Absolute path.'), gb: z.int().default(2) })

const createUnit = defineTool({
  name: 'create_unit',
  title: 'Create a unit',
  description:
    'Start a container (a unit) from an image, with a disk that survives stop and sleep. Begin with image "berth.local/code:1" for run_code, "berth.local/base:12" with Python and Node, or any public image. For a database use create_from_recipe. Needs cmd ["sleep","infinity"] where the image ends by itself.',
  input: strict({
    name: nameArgument.describe('a-z, 0-9 and -; unique in its stack.'),
    image: text(limits.imageLength.max),
    cmd: z.array(z.string()).optional().describe("Argv in place of the image's command."),
    env: z
      .record(z.string(), z.union([z.string(), secretArgument, teamSecretArgument], { error: envForms }))
      .optional()
      .describe(
        'Shown to the team, but for { "secret": NAME }, and { "teamSecret": NAME }, whose hosts get it. "{{unit:NAME}}" becomes the address of unit NAME in the stack.',
      ),
    ports: z.array(z.int()).optional().describe('Ports it listens on.'),
    size: z.enum(sizes).default('small').describe('nano 256 MB, small 512 MB, medium 2 GB, large 4 GB.'),
    volume: volumeArgument.optional(),
    files: z
      .record(z.string(), z.string())
      .optional()
      .describe('Path to text, written before each start; 256 KB in all.'),
    healthcheck: z.array(z.string()).optional().describe('Argv that exits 0 once ready.'),
    stack: nameArgument
      .optional()
      .describe('Units of a stack reach each other by name; made if absent. Default: name.'),
    expose: exposeArgument.optional().describe('Publish its port at a URL. private: only who has it.'),
    allow: z
      .array(z.string())
      .optional()
      .describe('All it may reach, as "api.github.com" or "preset:npm". Default: your limits.'),
    sleep: sleepArgument.optional(),
    wait_seconds: waitArgument.describe('Wait until it is ready.'),
  }),
  output: unitsRecordSchema,
  hints: hints.adds,
  operation: 'POST /v1/units',
  ask: (_app, _caller, { stack, expose, wait_seconds, healthcheck, allow, ...spec }) => ({
    body: {
      spec: {
        ...spec,
        ...(healthcheck === undefined ? {} : { healthcheck: { cmd: healthcheck } }),
        ...(allow === undefined ? {} : { egress: egressFor(allow) }),
      },
      // Each unit gets its own stack by default, so a repeated call finds the unit of the first.
      stack: stack ?? spec.name,
      ...(expose === undefined ? {} : { expose }),
      ...waitFor(wait_seconds),
    },
  }),
  progress: async (app, caller, { name, stack }) =>
    await creationStep(app, caller, { name, stack: stack ?? name }),
  result: (made: RunResult) => recordResult(runRecord(made)),
})

function egressFor(allow: string[]): EgressAsked {
  return allow.length === 0 ? { mode: 'none' } : { mode: 'listed', allow }
}

export function runRecord({ units, outputs, costLine }: RunResult): Record<string, unknown> {
  const unready = units.find(({ state }) => state !== 'running') ?? units[0]
  return {
    units: units.map(unitRecord),
    ...(Object.keys(outputs).length > 0 ? { outputs } : {}),
    costLine,
    next: unready ? nextOf(unready) : '',
  }
}

const listUnits = defineTool({
  name: 'list_units',
  title: 'List units',
  description: 'Units of the team, newest first.',
  input: strict({
    stack: text(100).optional().describe('Name or id of a stack.'),
    all: z.boolean().default(false).describe('Also destroyed ones.'),
    cursor: cursorArgument.optional(),
  }),
  output: unitsRecordSchema,
  hints: hints.reads,
  operation: 'GET /v1/units',
  ask: (_app, _caller, { stack, all, cursor }) => ({
    query: {
      limit: String(PAGE),
      all: String(all),
      ...(stack === undefined ? {} : { stack }),
      ...(cursor === undefined ? {} : { cursor }),
    },
  }),
  result: ({ units, next }: UnitList) =>
    recordResult({
      units: units.map(unitRecord),
      ...(next === null ? {} : { next, more: 'Send next as cursor.' }),
    }),
})

const getUnit = defineTool({
  name: 'get_unit',
  title: 'Look at a unit',
  description: 'All about one unit: state, last exit, addresses, ports, env, files, cost, when it sleeps.',
  input: onUnit,
  output: unitRecordSchema,
  hints: hints.reads,
  operation: 'GET /v1/units/{id}',
  target: 'unit',
  ask: onThatUnit,
  result: (unit: Unit) => recordResult({ ...unit, ...unitRecord(unit), next: nextOf(unit) }),
})

const stopUnit = defineTool({
  name: 'stop_unit',
  title: 'Stop a unit',
  description: 'Stop a unit and keep its disk. Only start_unit runs it again.',
  input: onUnit,
  hints: hints.destroys,
  operation: 'POST /v1/units/{id}/stop',
  target: 'unit',
  ask: onThatUnit,
  result: told,
})

const startUnit = defineTool({
  name: 'start_unit',
  title: 'Start a unit',
  description: 'Run a unit again that was stopped or has exited.',
  input: onUnit,
  hints: hints.sets,
  operation: 'POST /v1/units/{id}/start',
  target: 'unit',
  ask: onThatUnit,
  result: told,
})

const destroyUnit = defineTool({
  name: 'destroy_unit',
  title: 'Destroy a unit',
  description: 'Delete a unit and its disk for good.',
  input: strict({ unit: unitArgument, confirm: z.string().describe("The unit's name again.") }),
  hints: hints.destroys,
  operation: 'DELETE /v1/units/{id}',
  target: 'unit',
  ask: async (app, caller, { unit, confirm }) => {
    const { id, name, state } = await locateUnit(app, caller, unit)
    if (confirm !== name && state !== 'destroyed') {
      const message = `must be "${name}", the name of the unit that would be lost with its disk`
      throw validation([{ path: 'confirm', message }])
    }
    return { params: { id } }
  },
  result: told,
})

/** For a tool whose only argument is a unit. */
export async function onThatUnit(app: App, caller: Caller, { unit }: { unit: string }): Promise<Asked> {
  return { params: { id: (await locateUnit(app, caller, unit)).id } }
}

function told(unit: Unit): ToolResult {
  return recordResult({ ...unitRecord(unit), next: nextOf(unit) })
}

export const unitTools: readonly Tool[] = [createUnit, listUnits, getUnit, stopUnit, startUnit, destroyUnit]
