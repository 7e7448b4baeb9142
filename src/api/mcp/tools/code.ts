// The tool that runs code and shows a model what it gave: values as text, plots as pictures.

import { z } from 'zod'
import { type CodeResult, codeLanguages } from '../../../contract/code.ts'
import { strict, text } from '../../../contract/fields.ts'
import { limits } from '../../../contract/limits.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { cutMiddle } from '../cut.ts'
import { fence, newMark } from '../fence.ts'
import { defineTool, hints, type Tool, type ToolResult } from '../tool.ts'
import { unitArgument } from './arguments.ts'

/** Of each part of an answer. */
const MAX_CHARACTERS = 12_000
/** Pictures of one answer, and the characters of base64 of each: what clients pass on to a model. */
const MAX_PICTURES = 4
const PICTURE_CHARACTERS = 2 * 1024 * 1024
/** Forms of a value that say to a model more than its plain text, best first. */
const TEXTS = ['text/markdown', 'text/plain', 'text/latex', 'text/html']
const PICTURES = ['image/png', 'image/jpeg']

const runCode = defineTool({
  name: 'run_code',
  title: 'Run code',
  description:
    'Run code in a unit of image berth.local/code:1 and see its values and plots. Variables stay. It has pandas, matplotlib, scipy, sklearn.',
  input: strict({
    unit: unitArgument,
    code: z.string().min(1).max(limits.codeLength),
    language: z.enum(codeLanguages).optional(),
    context: text(limits.nameLength).optional().describe('Of an answer.'),
    timeout_seconds: z.int().min(1).max(3500).default(50),
  }),
  hints: { ...hints.destroys, idempotentHint: false, openWorldHint: true },
  operation: 'POST /v1/units/{id}/code',
  target: 'unit',
  ask: async (app, caller, { unit, code, language, context, timeout_seconds }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id },
    body: {
      code,
      timeoutMs: timeout_seconds * 1000,
      ...(language && { language }),
      ...(context !== undefined && { context }),
    },
  }),
  result: (answer: CodeResult, { timeout_seconds }): ToolResult => {
    const mark = newMark()
    const said = [
      ['output', answer.stdout],
      ['stderr', answer.stderr],
      ['values', answer.results.map(({ data }) => textOf(data)).join('\n')],
      ['error', answer.error === null ? '' : errorText(answer.error)],
    ] as const
    const parts = said.flatMap(([name, words]) =>
      words === '' ? [] : [fence(name, mark, cutMiddle(words, MAX_CHARACTERS), 'print less of it')],
    )
    const pictures = answer.results.flatMap(({ data }) => pictureOf(data)).slice(0, MAX_PICTURES)
    return {
      content: [{ type: 'text', text: [headOf(answer, timeout_seconds), ...parts].join('\n') }, ...pictures],
    }
  },
})

function headOf({ context, error, results, timedOut, truncated }: CodeResult, timeoutS: number): string {
  const ended = timedOut ? `interrupted after ${timeoutS} s` : error === null ? 'done' : 'failed'
  const cut = truncated ? ' · some of it is left out' : ''
  return `${ended} · ${results.length === 1 ? '1 value' : `${results.length} values`} · context ${context}${cut}`
}

/** Without the colours of a terminal. */
function errorText({ name, value, traceback }: NonNullable<CodeResult['error']>): string {
  // oxlint-disable-next-line no-control-regex
  return [`${name}: ${value}`, ...traceback].join('\n').replaceAll(/\u001B\[[0-9;]*m/g, '')
}

function textOf(data: Record<string, unknown>): string {
  const type = TEXTS.find((mime) => typeof data[mime] === 'string')
  if (type !== undefined) return String(data[type])
  return `(${Object.keys(data).join(', ')})`
}

function pictureOf(
  data: Record<string, unknown>,
): Extract<ToolResult['content'][number], { type: 'image' }>[] {
  const mimeType = PICTURES.find((mime) => typeof data[mime] === 'string')
  if (mimeType === undefined) return []
  const picture = String(data[mimeType]).replaceAll(/\s/g, '')
  return picture.length > PICTURE_CHARACTERS ? [] : [{ type: 'image', data: picture, mimeType }]
}

export const codeTools: readonly Tool[] = [runCode]
