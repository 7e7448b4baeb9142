// The pages of the REST API, from the OpenAPI document: one that lists every operation, and one for each noun.

import { slugOf } from '../slug.ts'
import { type Answer, cell, type Document, nameOfRef, type Operation, type Parameter } from './document.ts'
import { clientExamples } from './client-examples.ts'
import { fieldTable, resolve, typeOf } from './fields.ts'

type Call = { method: string; path: string; operation: Operation }

/** Every page by its path. */
export function operationPages(document: Document): Map<string, string> {
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const groups = document.tags
    .map(({ name, description }) => ({
      path: `api/${slugOf(name)}`,
      title: titleOf(name),
      description,
      calls: calls.filter(({ operation }) => operation.tags?.includes(name)),
    }))
    .filter((group) => group.calls.length > 0)
  return new Map([
    ['api', listPage(document, groups)],
    ...groups.map((group): [string, string] => [group.path, groupPage(document, group)]),
  ])
}

type Group = { path: string; title: string; description: string; calls: Call[] }

function titleOf(tag: string): string {
  const name = `${tag.charAt(0).toUpperCase()}${tag.slice(1)}`
  if (['account', 'service'].includes(tag)) return name
  return name.endsWith('s') ? `${name}es` : `${name}s`
}

function listPage(document: Document, groups: readonly Group[]): string {
  return [
    '# REST API',
    '',
    document.info.description,
    '',
    'Written from [the OpenAPI document](/v1/openapi.json) of this service. [Errors](/docs/errors), [streams](/docs/streams) and [limits](/docs/limits) are the same for all of it.',
    '',
    ...groups.flatMap(({ path, title, description, calls }) => [
      `## ${title}`,
      '',
      description,
      '',
      '| call | does |',
      '|---|---|',
      ...calls.map(({ method, path: route, operation }) => {
        const anchor = slugOf(operation.summary)
        return `| [\`${method} ${route}\`](/docs/${path}#${anchor}) | ${cell(operation.summary)} |`
      }),
      '',
    ]),
  ].join('\n')
}

function groupPage(document: Document, { title, description, calls }: Group): string {
  return [`# ${title}`, '', description, '', ...calls.map((call) => operationSection(document, call))].join(
    '\n',
  )
}

function operationSection(document: Document, call: Call): string {
  const { method, path, operation } = call
  const { summary, description = '', requestBody, responses } = operation
  const body = requestBody?.content['application/json']
  return [
    `## ${summary}`,
    '',
    `\`${method} ${path}\``,
    '',
    description,
    '',
    parameterTable(document, operation),
    ...(body?.schema ? ['**Body**', '', bodyTables(document, body.schema)] : []),
    ...(requestBody && !body ? [`**Body**: ${Object.keys(requestBody.content).join(', ')}.`, ''] : []),
    examplesOf(call, body?.example),
    ...Object.entries(responses)
      .filter(([status]) => status.startsWith('2'))
      .flatMap(([status, answer]) => answerPart(document, status, answer)),
    '**Errors**',
    '',
    '| status | |',
    '|---|---|',
    ...Object.entries(responses)
      .filter(([status]) => !status.startsWith('2'))
      .map(([status, answer]) => `| ${status} | ${cell(aboutError(document, answer))} |`),
    '',
  ].join('\n')
}

function bodyTables(document: Document, schema: { $ref?: string }): string {
  const { anyOf } = resolve(document, schema)
  if (anyOf === undefined) return fieldTable(document, schema)
  return anyOf.map((form) => fieldTable(document, form)).join('\nor\n\n')
}

/** Those of a call; the team that a session acts in is the same for all. */
function parameterTable(document: Document, { parameters = [] }: Operation): string {
  const known = parameters
    .map((each): Parameter | undefined =>
      '$ref' in each ? document.components.parameters?.[nameOfRef(each.$ref)] : each,
    )
    .filter((each) => each !== undefined && each.name !== 'x-berth-team')
  if (known.length === 0) return ''
  const rows = known.map((each) => {
    const { name, in: place, required, description, schema = {} } = each ?? { name: '', in: '' }
    const fallback = schema.default === undefined ? '' : ` Default: \`${JSON.stringify(schema.default)}\`.`
    const about = `${description ?? schema.description ?? ''}${fallback}`
    return `| \`${name}\` | ${place} | ${cell(typeOf(document, schema))} | ${required ? 'yes' : ''} | ${cell(about)} |`
  })
  return ['| parameter | in | type | required | |', '|---|---|---|---|---|', ...rows, ''].join('\n')
}

/** The call by curl, and by the clients that have a name for it. */
function examplesOf(call: Call, body: unknown): string {
  const { cli, ts } = clientExamples[call.operation.operationId] ?? {}
  const blocks = [
    '```sh',
    curlOf(call, body),
    ...(cli === undefined ? [] : ['', `${cli}   # with the CLI`]),
    '```',
    '',
  ]
  if (ts !== undefined) blocks.push('```ts', ts, '```', '')
  return blocks.join('\n')
}

/** Its parameters stand in it as names in capitals. */
function curlOf({ method, path, operation }: Call, body: unknown): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => name.toUpperCase())
  const needed = (operation.parameters ?? []).filter(
    (each): each is Parameter => 'in' in each && each.in === 'query' && each.required === true,
  )
  const query = needed.map(({ name }) => `${name}=${name === 'path' ? '/app/data.txt' : name.toUpperCase()}`)
  const url = `http://127.0.0.1:7070${filled}${query.length === 0 ? '' : `?${query.join('&')}`}`
  const isOpen = operation.security?.length === 0
  const flags = [
    ...(method === 'GET' || (method === 'POST' && body !== undefined) ? [] : [`-X ${method}`]),
    ...(isOpen ? [] : ['-H "authorization: Bearer $BERTH_API_KEY"']),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'"]),
  ]
  const head = ['curl', ...flags, `"${url}"`].join(' ')
  if (body !== undefined) return `${head} -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`
  return operation.requestBody ? `${head} --data-binary @FILE` : head
}

function answerPart(
  document: Document,
  status: string,
  { description = '', content = {} }: Answer,
): string[] {
  const { schema, example } = content['application/json'] ?? {}
  const stream = content['text/event-stream']?.schema?.description
  return [
    `**Answer** ${status}: ${description}`,
    '',
    ...(stream === undefined ? [] : [`As a [stream](/docs/streams): ${stream}`, '']),
    ...(schema === undefined ? [] : [fieldTable(document, schema)]),
    ...(example === undefined ? [] : ['```json', JSON.stringify(example, null, 2), '```', '']),
  ]
}

function aboutError({ components }: Document, { $ref, description }: Answer): string {
  return description ?? ($ref === undefined ? '' : (components.responses[nameOfRef($ref)]?.description ?? ''))
}
