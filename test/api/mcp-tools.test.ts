// What a model reads about the tools: small enough for every session, the same each time, and true of the API.

import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { expect, test } from 'vitest'
import { toolList } from '../../src/api/mcp/tool-list.ts'
import { instructions } from '../../src/api/mcp/instructions.ts'
import { tools } from '../../src/api/mcp/tools/tools.ts'
import { routes } from '../../src/api/routes.ts'

/** In the form that clients send it: name, description and input schema. */
const tokensOf = (value: unknown) => encode(JSON.stringify(value)).length

test('the answer to tools/list has at most 4,000 tokens, and each tool a bounded share', () => {
  expect(tokensOf({ tools: toolList })).toBeLessThanOrEqual(4000)
  for (const { name, description, inputSchema } of toolList) {
    const most = name === 'create_unit' ? 750 : 330
    expect({ name, tokens: tokensOf({ name, description, inputSchema }) }).toSatisfy(
      ({ tokens }: { tokens: number }) => tokens <= most,
    )
  }
})

test('the instructions fit into what clients show of them', () => {
  expect(encode(instructions).length).toBeLessThanOrEqual(260)
  expect(Buffer.byteLength(instructions)).toBeLessThan(2048)
})

test('input schemas are plain objects that every client can read', () => {
  for (const { name, inputSchema } of toolList) {
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
    expect(Object.keys(inputSchema)).not.toContain('anyOf')
    expect(JSON.stringify(inputSchema)).not.toMatch(/\$ref|\$schema|"not"/)
    expect(name).toMatch(/^[a-z_]{3,40}$/)
  }
})

test('the readOnly hint of each tool agrees with its route', () => {
  for (const tool of tools) {
    const { kind } = tool.routeFor({})
    expect({ name: tool.name, isRead: tool.hints.readOnlyHint }).toEqual({
      name: tool.name,
      isRead: kind === 'read',
    })
  }
})

/** Operations without a tool, with the reason. */
const withoutTool: Record<string, string> = {
  'PUT /v1/units/{id}/files': 'write_file sends base64',
  'GET /v1/units/{id}/directory': 'run_command lists with ls or find',
  'DELETE /v1/units/{id}/files': 'run_command removes with rm',
  'GET /v1/units/{id}/files/content': 'what a model reads fits into read_file',
  'PUT /v1/units/{id}/files/content': 'what a model writes fits into write_file',
  'GET /v1/units/{id}/files/facts': 'run_command has stat',
  'GET /v1/units/{id}/files/watch': 'an agent asks, a program follows',
  'POST /v1/units/{id}/files/move': 'run_command has mv',
  'POST /v1/units/{id}/directory': 'run_command has mkdir',
  'PATCH /v1/units/{id}': 'labels and ends are for programs that make units for others',
  'GET /v1/units/{id}/process-table': 'run_command has ps',
  'POST /v1/units/{id}/process-table/{pid}/signal': 'run_command has kill',
  'GET /v1/units/{id}/archive': 'a tar archive is nothing that a model reads',
  'PUT /v1/units/{id}/archive': 'a tar archive is nothing that a model writes',
  'GET /v1/events': 'an agent asks, a screen follows',
  'POST /v1/stacks': 'a create makes its stack',
  'GET /v1/stacks': 'list_units has the stacks',
  'GET /v1/stacks/{id}': 'list_units with stack',
  'GET /v1/pricing': 'get_limits tells prices',
  'GET /v1/units/{id}/processes/{processId}': 'read_process tells its state with its output',
  'GET /v1/units/{id}/exec': 'run_command runs what needs no terminal',
  'GET /v1/units/{id}/metrics': 'run_command has ps, free and df, and a screen follows',
  'GET /v1/units/{id}/metrics/history': 'a plot is for people',
  'GET /v1/metrics/recent': 'a plot is for people',
  'PUT /v1/units/{id}/secrets/{name}': 'a value that an agent knows is no secret from it',
  'POST /v1/units/{id}/calls': 'what an agent does here is in the audit log already',
  'GET /v1/units/{id}/egress': 'read_logs with egress tells what was refused and which entry it lacked',
  'PUT /v1/units/{id}/egress':
    'create_unit takes them, and a unit that an agent works in should not be widened by it',
  'POST /v1/units/{id}/egress/check': 'a request that fails says so by itself',
  'GET /v1/secrets': 'get_limits tells which secrets it may bind',
  'PUT /v1/secrets/{name}': 'a value that an agent knows is no secret from it',
  'DELETE /v1/secrets/{name}': 'an agent uses secrets, and people keep them',
  'GET /v1/units/summary': 'list_units says what each unit costs and how it stands',
  'POST /v1/units/{id}/code/contexts': 'run_code makes one for each language, and a unit is quickly copied',
  'GET /v1/units/{id}/code/contexts': 'run_code says in which it ran',
  'POST /v1/units/{id}/code/contexts/{contextId}/restart': 'code that ends its own process begins anew',
  'POST /v1/units/{id}/code/contexts/{contextId}/interrupt': 'run_code interrupts at timeout_seconds',
  'DELETE /v1/units/{id}/code/contexts/{contextId}': 'they end with the unit',
  'DELETE /v1/units/{id}/processes/{processId}': 'signal_process ends it, and what is over goes by itself',
  'POST /v1/units/{id}/processes/{processId}/input': 'run_command gives a command its whole input',
  'POST /v1/units/{id}/processes/{processId}/keep-awake':
    'run_command in the background keeps the unit awake for an hour',
}

/** Operations for people. */
const ofPeople = /^\w+ \/v1\/(?:agents|hosted-agents|keys|me|teams|invites|auth|webhooks|openapi\.json)\b/

test('every operation has a tool, or a reason to have none', () => {
  const variants = [
    {},
    { recipe: 'redis' },
    { stack: 'a' },
    { days: 1 },
    { background: true },
    { egress: true },
    { process: 'a' },
  ]
  const reached = new Set(
    tools
      .flatMap((tool) => variants.map((args) => tool.routeFor(args)))
      .map(({ method, path }) => `${method} ${path}`),
  )
  const without = routes
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => !reached.has(route) && !ofPeople.test(route) && !(route in withoutTool))
  expect(without).toEqual([])
})
