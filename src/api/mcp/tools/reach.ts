// Tools that publish a port, fork, put to sleep, and delete a stack.

import { z } from 'zod'
import { endpointModes, type Exposed, protocols } from '../../../contract/endpoint.ts'
import { validation } from '../../../contract/errors.ts'
import { strict, text } from '../../../contract/fields.ts'
import type { ForkResult } from '../../../contract/fork.ts'
import type { Stack } from '../../../contract/stack.ts'
import type { Unit } from '../../../contract/unit.ts'
import { creationStep } from '../../../domain/units/creation-step.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { getStack } from '../../../domain/stacks/get.ts'
import { count } from '../fence.ts'
import { defineTool, hints, recordResult, type Tool } from '../tool.ts'
import { nameArgument, sleepArgument, unitArgument, waitArgument, waitFor } from './arguments.ts'
import { nextOf, unitRecord } from './records.ts'

const exposePort = defineTool({
  name: 'expose_port',
  title: 'Publish a port',
  description:
    'Give a port of a unit a URL, or a database port an address with TLS. A unit has one URL: another port moves it and restarts the unit. rotate gives a new one.',
  input: strict({
    unit: unitArgument,
    port: z.int().min(1).max(65_535),
    mode: z
      .enum(endpointModes)
      .optional()
      .describe('public: anyone. private: only who has the URL. Default: as before, or private.'),
    protocol: z.enum(protocols).optional(),
    rotate: z.boolean().default(false),
  }),
  // Each rotation makes another address, and ends one that others may use.
  hints: { ...hints.destroys, idempotentHint: false, openWorldHint: true },
  operation: 'POST /v1/units/{id}/expose',
  target: 'unit',
  ask: async (app, caller, { unit, ...body }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id },
    body,
  }),
  result: (exposed: Exposed) => recordResult({ ...exposed }),
})

const fork = defineTool({
  name: 'fork',
  title: 'Fork a unit or stack',
  description: 'Copy a unit, or a whole stack, as it is now, with its disk and where possible its memory.',
  input: strict({
    unit: unitArgument.optional(),
    stack: text(100).optional().describe('Or stack to copy.'),
    name: nameArgument.optional().describe('Of the copy of a unit.'),
    into: nameArgument.optional().describe('Stack of the copies.'),
    sleep: sleepArgument.optional(),
    wait_seconds: waitArgument,
  }),
  hints: hints.adds,
  operation: ({ stack, unit }) =>
    stack !== undefined && unit === undefined ? 'POST /v1/stacks/{id}/fork' : 'POST /v1/units/{id}/fork',
  target: ({ stack, unit }) => unit ?? stack,
  ask: async (app, caller, { unit, stack, name, into, sleep, wait_seconds }) => {
    if ((unit === undefined) === (stack === undefined)) {
      throw validation([{ path: 'unit', message: 'say which unit to copy, or else which stack' }])
    }
    const both = { ...(sleep === undefined ? {} : { sleep }), ...waitFor(wait_seconds) }
    if (stack !== undefined) {
      if (name !== undefined)
        throw validation([{ path: 'name', message: 'copies of a stack keep their names' }])
      return {
        params: { id: (await getStack(app, caller, stack)).id },
        body: { ...both, ...(into ? { into } : {}) },
      }
    }
    const { id } = await locateUnit(app, caller, unit ?? '')
    const named = { ...(name === undefined ? {} : { name }), ...(into === undefined ? {} : { stack: into }) }
    return { params: { id }, body: { ...both, ...named } }
  },
  progress: async (app, caller, { name, into }) =>
    name === undefined ? 'copying' : await creationStep(app, caller, { name, stack: into ?? null }),
  result: ({ units, copied, outputs, stack, skipped, costLine }: ForkResult) => {
    const [first] = units
    return recordResult({
      units: units.map(unitRecord),
      stack,
      copied,
      ...(Object.keys(outputs).length > 0 ? { outputs } : {}),
      ...(skipped.length > 0 ? { skipped } : {}),
      costLine,
      next: first ? nextOf(first) : '',
    })
  },
})

const setSleep = defineTool({
  name: 'set_sleep',
  title: 'Set when it sleeps',
  description: 'How long a unit may idle before it sleeps. A command or visit wakes it.',
  input: strict({
    unit: unitArgument,
    sleep: sleepArgument,
    whole_stack: z.boolean().default(false).describe('Its stack sleeps and wakes together.'),
    now: z.boolean().default(false).describe('Sleep at once, too.'),
  }),
  hints: hints.sets,
  operation: 'POST /v1/units/{id}/sleep',
  target: 'unit',
  ask: async (app, caller, { unit, whole_stack, sleep, now }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id },
    body: { sleep, stack: whole_stack, now },
  }),
  result: ({ units }: { units: Unit[] }) => recordResult({ units: units.map(unitRecord) }),
})

const destroyStack = defineTool({
  name: 'destroy_stack',
  title: 'Destroy a stack',
  description: 'Delete a stack and all its units with their disks for good.',
  input: strict({
    stack: text(100).describe('Name or id.'),
    confirm: z.string().describe("The stack's name again."),
  }),
  hints: hints.destroys,
  operation: 'DELETE /v1/stacks/{id}',
  target: 'stack',
  ask: async (app, caller, { stack, confirm }) => {
    const { id, name, units } = await getStack(app, caller, stack)
    if (confirm !== name) {
      const lost = units.map((unit) => unit.name).join(', ')
      const which =
        units.length === 0
          ? 'has no units'
          : `would lose ${count(units.length)} units with their disks: ${lost}`
      throw validation([
        { path: 'confirm', message: `must be "${name}", the name of the stack, which ${which}` },
      ])
    }
    return { params: { id } }
  },
  result: ({ id, name, units }: Stack) =>
    recordResult({ id, name, destroyed: units.map((unit) => unit.name) }),
})

export const reachTools: readonly Tool[] = [exposePort, fork, setSleep]
export const stackTools: readonly Tool[] = [destroyStack]
