// The page of the MCP tools, from the list that clients get.

import { toolList } from '../../mcp/tool-list.ts'
import { cell, type Document, type Schema } from './document.ts'
import { fieldTable } from './fields.ts'

export function toolsPage(document: Document): string {
  return [
    '# MCP tools',
    '',
    'What an agent sees of Berth at `http://127.0.0.1:7070/mcp`, written from the list that clients get. [Connect an agent](/docs/connect) says how a program is connected; what each tool may do is bounded by [the policy](/docs/concepts/policies) of its credential.',
    '',
    '| tool | does |',
    '|---|---|',
    ...toolList.map(({ name, title }) => `| [\`${name}\`](#${name}) | ${cell(title)} |`),
    '',
    ...toolList.flatMap(({ name, description, inputSchema, annotations }) => [
      `## ${name}`,
      '',
      description,
      '',
      natureOf(annotations),
      '',
      fieldTable(document, inputSchema as Schema) || 'It takes no arguments.\n',
    ]),
  ].join('\n')
}

function natureOf({
  readOnlyHint,
  destructiveHint,
  idempotentHint,
}: Partial<Record<string, boolean>>): string {
  if (readOnlyHint) return 'Reads, and changes nothing.'
  const twice = idempotentHint ? 'Called twice, it does the same as once.' : 'Called twice, it happens twice.'
  return `${destructiveHint ? 'Destroys something for good.' : 'Changes something.'} ${twice}`
}
