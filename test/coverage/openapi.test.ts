// openapi.json is up to date, served, and without an error that a linter finds (reliability Z9).

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { errorStatusesOf, nouns, openApiDocument, operationId } from '../../src/api/openapi.ts'
import { operationDocs } from '../../src/api/operation-docs/operation-docs.ts'
import { routes } from '../../src/api/routes.ts'
import { run } from '../../src/lib/process.ts'
import { startService } from '../support/service.ts'

const path = fileURLToPath(new URL('../../openapi.json', import.meta.url))

test('the committed openapi.json is what scripts/gen.ts writes', async () => {
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(
    JSON.parse(JSON.stringify(openApiDocument(routes))),
  )
})

test('the server serves the committed openapi.json', async () => {
  const service = await startService()
  try {
    const { status, body } = await service.call('GET', '/v1/openapi.json')
    expect(status).toBe(200)
    expect(body).toEqual(JSON.parse(await readFile(path, 'utf8')))
  } finally {
    await service.close()
  }
})

test('a linter finds no error and no warning in openapi.json', async () => {
  const redocly = fileURLToPath(new URL('../../node_modules/@redocly/cli/bin/cli.js', import.meta.url))
  const env = { PATH: '', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' }
  // The response to a WebSocket is 101.
  const args = [redocly, 'lint', path, '--format=json', '--skip-rule=operation-2xx-response']
  const result = await run(process.execPath, args, { timeoutMs: 60_000, env })
  expect(result.exitCode, result.stderr).toBe(0)
  const { totals } = JSON.parse(result.stdout) as { totals: { errors: number; warnings: number } }
  expect(totals).toMatchObject({ errors: 0, warnings: 0 })
}, 60_000)

type Example = { example?: unknown }
type Body = { content?: Record<string, Example> }
type Documented = {
  requestBody?: Body
  responses: Record<string, Body>
  parameters?: { schema: Example }[]
}
type Parameter = { name: string; description?: string; schema?: { description?: string } }
const document = openApiDocument(routes) as {
  paths: Record<string, Record<string, { description: string; parameters?: Parameter[] }>>
}

const described = routes.map((route) => [operationId(route), route] as const)

test('every operation and every noun is described, and nothing else is', () => {
  expect(Object.keys(operationDocs).toSorted()).toEqual(described.map(([id]) => id).toSorted())
  expect(Object.keys(nouns).toSorted()).toEqual([...new Set(routes.map(({ noun }) => noun))].toSorted())
})

describe.each(described)('the operation %s', (id, route) => {
  const doc = operationDocs[id]

  test('has examples that its schemas accept', () => {
    expect(route.response.safeParse(doc?.response).error?.issues).toBeUndefined()
    expect(doc?.request !== undefined).toBe(route.body.kind !== 'none')
    expect(doc?.events !== undefined).toBe(Object.keys(route.events).length > 0)
    if (route.body.kind === 'json')
      expect(route.body.schema.safeParse(doc?.request).error?.issues).toBeUndefined()
  })

  test('has an example in the document', () => {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()]
    const { requestBody, responses, parameters } = JSON.parse(JSON.stringify(operation)) as Documented
    const success = Object.entries(responses).filter(([status]) => Number(status) < 400)
    const media = [requestBody, ...success.map(([, response]) => response)].map((each) => each?.content ?? {})
    const examples = [...media.flatMap(Object.values), ...(parameters ?? []).map(({ schema }) => schema)]
    expect(examples.filter((each) => each.example !== undefined)).not.toEqual([])
    for (const [name, example] of Object.entries(doc?.query ?? {})) {
      const query = route.query as z.ZodObject
      expect([name, query.shape[name]?.safeParse(example).error]).toEqual([name, undefined])
    }
  })

  test('says what it costs, and describes each parameter', () => {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()]
    expect(operation?.description).toMatch(/Cost: [A-Z]/)
    const undescribed = (operation?.parameters ?? []).filter(
      ({ description, schema }) => (description ?? schema?.description) === undefined,
    )
    expect(undescribed.map(({ name }) => name)).toEqual([])
  })

  test('describes only errors that it can return', () => {
    expect(errorStatusesOf(route).map(String)).toEqual(expect.arrayContaining(Object.keys(doc?.errors ?? {})))
  })
})
