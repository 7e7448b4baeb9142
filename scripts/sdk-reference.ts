// docs/sdk-reference.md: what the TypeScript SDK exports, with the comments that stand above it in the source.

import { readFileSync } from 'node:fs'

const folder = new URL('../packages/sdk/src/', import.meta.url)

/** In the order in which a reader meets them. */
const sources = [
  ['berth', 'The client'],
  ['units', 'Making and finding units'],
  ['unit', 'A unit'],
  ['command', 'Commands'],
  ['code', 'Code'],
  ['processes', 'Background processes'],
  ['files', 'Files'],
  ['logs', 'Logs'],
  ['stacks', 'Stacks'],
  ['recipes', 'Recipes'],
  ['list', 'Lists'],
  ['transport', 'Options of every call'],
  ['settings', 'Options of the client'],
  ['errors', 'Errors'],
  ['shell', 'Shell lines'],
] as const

export function sdkReference(): string {
  const exported = exportedNames()
  return [
    '# Reference of the TypeScript SDK\n',
    'Written by `npm run gen` from the source. [sdk.md](sdk.md) is the page to begin with. Types of the API itself (`Contract`) are those of [the OpenAPI document](../openapi.json).\n',
    ...sources.flatMap(([file, title]) => {
      const parts = declarationsOf(readFileSync(new URL(`${file}.ts`, folder), 'utf8'))
        .filter(({ name }) => exported.has(name))
        .map(
          ({ name, comment, code }) =>
            `### ${name}\n\n${comment === '' ? '' : `${comment}\n\n`}\`\`\`ts\n${code}\n\`\`\`\n`,
        )
      return parts.length === 0 ? [] : [`## ${title}\n`, ...parts]
    }),
  ].join('\n')
}

function exportedNames(): Set<string> {
  const index = readFileSync(new URL('index.ts', folder), 'utf8')
  const lists = [...index.matchAll(/export (?:type )?\{([^}]*)\}/g)].map(([, list = '']) => list)
  return new Set(lists.flatMap((list) => list.split(',').map((name) => name.replace('type ', '').trim())))
}

type Declaration = { name: string; comment: string; code: string }

/** Top-level exports, each up to the line that closes it. */
function declarationsOf(text: string): Declaration[] {
  const lines = text.split('\n')
  const found: Declaration[] = []
  for (const [at, line] of lines.entries()) {
    const [, kind = '', name = ''] = /^export (?:async )?(type|class|function|const) (\w+)/.exec(line) ?? []
    if (name === '') continue
    const end = endOf(lines, at, kind)
    const code = lines.slice(at, end + 1)
    found.push({
      name,
      comment: commentAbove(lines, at),
      code: kind === 'class' ? classShape(code) : shapeOf(code, kind),
    })
  }
  return found
}

/** Declarations at the top level end before the next line that begins at the margin with something else than a bracket. */
function endOf(lines: readonly string[], at: number, kind: string): number {
  if (kind === 'function' || kind === 'class')
    return lines.findIndex((line, index) => index >= at && line === '}')
  let end = at
  while (end + 1 < lines.length && /^(?:\s+\S|[})\]])/.test(lines[end + 1] ?? '')) end += 1
  return end
}

function commentAbove(lines: readonly string[], at: number): string {
  if (!(lines[at - 1] ?? '').trimEnd().endsWith('*/')) return ''
  let from = at - 1
  while (!(lines[from] ?? '').trimStart().startsWith('/**')) from -= 1
  return lines
    .slice(from, at)
    .map((line) => line.replace(/^\s*\/?\*+\/?\s?/, '').replace(/\s*\*\/\s*$/, ''))
    .join(' ')
    .trim()
}

/** A function without its body. */
function shapeOf(code: readonly string[], kind: string): string {
  const text = code.join('\n')
  if (kind !== 'function') return text.replace(/^export /, '')
  return signature(text.replace(/^export /, '').split('\n'))
}

/** Its public fields and methods, without what is in them. */
function classShape(code: readonly string[]): string {
  const [head = ''] = code
  const members: string[] = []
  for (let at = 1; at < code.length; at += 1) {
    const line = code[at] ?? ''
    if (!/^ {2}[\w[*]/.test(line) || line.includes(' #')) continue
    const comment = commentAbove(code, at)
    const isMethod = /^ {2}(?:async |get |\*)*[\w[\].]+(?:<[^(]*>)?\(/.test(line)
    const end = isMethod
      ? code.findIndex((each, index) => index >= at && /^ {2}\}/.test(each) && !each.endsWith('{'))
      : at
    const isRest = isMethod && end < at
    const text = isMethod ? signature(code.slice(at, (isRest ? at : end) + 1)) : line
    if (comment !== '') members.push(`  /** ${comment} */`)
    members.push(text.replaceAll(/^ {2}async /gm, '  '))
    if (!isRest) at = Math.max(at, end)
  }
  return [head.replace(/^export /, ''), ...members, '}'].join('\n')
}

/** Up to the brace that opens a body: the last one at the end of a line whose brackets are closed. */
function signature(code: readonly string[]): string {
  const taken: string[] = []
  let depth = 0
  for (const line of code) {
    const before = depth
    for (const character of line.replaceAll(/'[^']*'/g, '')) {
      if ('([{'.includes(character)) depth += 1
      if (')]}'.includes(character)) depth -= 1
    }
    const opensBody = line.endsWith('{') && depth === 1 && (before === 0 || /^\s*\}?\)/.test(line))
    if (opensBody) return [...taken, line.replace(/\s*\{$/, '')].join('\n')
    taken.push(line)
    if (depth === 0 && line.endsWith('}')) return taken.join('\n').replace(/\s*\{[^{}]*\}$/, '')
  }
  return taken.join('\n')
}
