// `npm run sentences`: every sentence that people see, from the code that shows it: the dashboard, the server's own pages,
// the CLI, errors and what the SDKs say. `-- WORD` prints those with the word. test/coverage/sentences.test.ts judges them.

import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'rolldown/utils'

const project = fileURLToPath(new URL('..', import.meta.url))

/** Whose words are shown to people, by what shows them. */
const shown = {
  dashboard: ['packages/dashboard/src/**/*.{ts,tsx}'],
  pages: ['src/api/web/*.ts', 'src/domain/mail/*.ts'],
  cli: ['packages/cli/src/**/*.ts'],
  errors: ['src/contract/*.ts', 'src/domain/**/*.ts', 'src/api/{http,routes}/**/*.ts', 'src/gateway/**/*.ts'],
  sdk: ['packages/sdk/src/**/*.ts'],
} as const

export type Sentence = { place: string; text: string }

type Node = { type: string; [key: string]: unknown }

/** A text of code that reads like a sentence or a label: it begins with a capital letter and has two words. */
const isProse = (text: string) =>
  /^[A-Z][\w'’,-]* [\w'’…(]/.test(text) && !/[{}<>;=]{2}|\bselect\b|^[A-Z ]+$/.test(text)

export function listSentences(): Sentence[] {
  const files = Object.values(shown).flatMap((patterns) => globSync([...patterns], { cwd: project }))
  return files
    .filter((file) => !/\.test\.ts$|generated/.test(file))
    .toSorted()
    .flatMap((file) => {
      const texts = textsOf(readFileSync(`${project}/${file}`, 'utf8'), file)
      return texts.flatMap((text) => sentencesOf(text).map((sentence) => ({ place: file, text: sentence })))
    })
}

export function sentencesOf(text: string): string[] {
  return text
    .replaceAll(/\s+/g, ' ')
    .split(/(?<=[.?!:])\s+(?=[A-Z`“"])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.includes(' '))
}

function textsOf(source: string, file: string): string[] {
  const { program } = parseSync(file, source)
  const found: string[] = []
  visit(program as unknown as Node, found)
  return found
}

function visit(node: Node, found: string[]): void {
  if (node.type === 'JSXElement' || node.type === 'JSXFragment') {
    const text = jsxText(node)
    if (text !== null) found.push(text)
    // What is within the text is part of it; attributes and elements beside it have texts of their own.
    for (const inner of innerOf(node)) visitJsx(inner, text !== null, found)
    return
  }
  const text = literalOf(node)
  if (text !== null) return void (isProse(text) && found.push(text))
  if (node.type === 'ImportDeclaration' || node.type.startsWith('TS')) return
  for (const child of childrenOf(node)) visit(child, found)
}

function visitJsx(node: Node, isInText: boolean, found: string[]): void {
  if (node.type === 'JSXText') return
  if (isInText && node.type === 'JSXElement' && jsxText(node) !== null) {
    for (const inner of innerOf(node)) visitJsx(inner, true, found)
    return
  }
  visit(node, found)
}

const innerOf = (node: Node): Node[] => [
  ...((node['openingElement'] as { attributes: Node[] } | undefined)?.attributes ?? []),
  ...(node['children'] as Node[]),
]

/** The words of an element that has some beside its elements: expressions are `…`. */
function jsxText(node: Node): string | null {
  const children = node['children'] as Node[]
  if (!children.some((child) => child.type === 'JSXText' && /[a-z]{2}/i.test(String(child['value']))))
    return null
  const words = children.map((child): string => {
    if (child.type === 'JSXText') return String(child['value'])
    if (child.type === 'JSXElement') return jsxText(child) ?? '…'
    const expression = child['expression'] as Node | undefined
    if (!expression || expression.type === 'JSXEmptyExpression') return ''
    return literalOf(expression) ?? '…'
  })
  return words.join('').trim()
}

function literalOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : null
  if (node.type === 'BinaryExpression' && node['operator'] === '+') {
    const [left, right] = [literalOf(node['left'] as Node), literalOf(node['right'] as Node)]
    return left === null && right === null ? null : `${left ?? '…'}${right ?? '…'}`
  }
  if (node.type !== 'TemplateLiteral') return null
  const quasis = node['quasis'] as { value: { cooked: string } }[]
  return quasis.map(({ value }) => value.cooked).join('…')
}

function childrenOf(node: Node): Node[] {
  const isNode = (value: unknown): value is Node =>
    typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
  return Object.values(node).flatMap((value) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
}

if (import.meta.main) {
  const [word = ''] = process.argv.slice(2)
  for (const { place, text } of listSentences()) if (text.includes(word)) console.log(`${place}: ${text}`)
}
