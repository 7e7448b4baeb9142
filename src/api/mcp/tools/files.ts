// Tools that write and read files.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { strict } from '../../../contract/fields.ts'
import { validation } from '../../../contract/errors.ts'
import type { FileRead, FileWritten } from '../../../contract/files.ts'
import { locateUnit } from '../../../domain/units/locate.ts'
import { shorten } from '../cut.ts'
import { count, newMark } from '../fence.ts'
import { defineTool, hints, recordResult, textResult, type Tool, type ToolResult } from '../tool.ts'
import { pathArgument, unitArgument } from './arguments.ts'

const TEXT_CHARACTERS = 40_000
const LINE_CHARACTERS = 10_000
const BASE64_BYTES = 30_000

const writeFile = defineTool({
  name: 'write_file',
  title: 'Write a file',
  description: 'Write a file in a unit over what is there, up to 1 MB; mode as "0755".',
  input: strict({
    unit: unitArgument,
    path: pathArgument,
    text: z.string().optional(),
    base64: z.string().optional().describe('For bytes.'),
    mode: z.string().optional(),
  }),
  hints: hints.destroys,
  operation: 'POST /v1/units/{id}/files',
  target: 'unit',
  ask: async (app, caller, { unit, path, text, base64, mode }) => {
    if ((text === undefined) === (base64 === undefined)) {
      throw validation([{ path: 'text', message: 'give the content as text, or else as base64' }])
    }
    const contentBase64 = base64 ?? Buffer.from(text ?? '').toString('base64')
    const body = { path, contentBase64, ...(mode === undefined ? {} : { mode }) }
    return { params: { id: (await locateUnit(app, caller, unit)).id }, body }
  },
  result: ({ path, bytes, sha256, warning }: FileWritten) =>
    recordResult({ path, bytes, sha256, ...(warning === undefined ? {} : { warning }) }),
})

const readFile = defineTool({
  name: 'read_file',
  title: 'Read a file',
  description: 'Read a file of a unit, up to 1 MB: text by lines, pictures, other bytes as base64.',
  input: strict({
    unit: unitArgument,
    path: pathArgument,
    from_line: z.int().min(1).max(1_000_000).default(1),
    max_lines: z.int().min(1).max(5000).default(1000),
  }),
  hints: hints.reads,
  operation: 'GET /v1/units/{id}/files',
  target: 'unit',
  ask: async (app, caller, { unit, path }) => ({
    params: { id: (await locateUnit(app, caller, unit)).id },
    query: { path },
  }),
  result: ({ path, contentBase64 }: FileRead, { from_line, max_lines }) => {
    const bytes = Buffer.from(contentBase64, 'base64')
    const picture = pictureTypeOf(bytes)
    if (picture !== null) return { content: [{ type: 'image', data: contentBase64, mimeType: picture }] }
    const text = plainTextOf(bytes)
    return text === null ? binary(path, bytes) : lines(path, text, { from: from_line, most: max_lines })
  },
})

/** By its first bytes, which a unit can choose freely: the client decodes the rest at its own risk. */
function pictureTypeOf(bytes: Buffer): string | null {
  const begins = (at: number, signature: string) =>
    bytes.subarray(at, at + signature.length).equals(Buffer.from(signature, 'latin1'))
  if (begins(0, '\x89PNG\r\n\x1a\n')) return 'image/png'
  if (begins(0, '\xff\xd8\xff')) return 'image/jpeg'
  if (begins(0, 'GIF87a') || begins(0, 'GIF89a')) return 'image/gif'
  return begins(0, 'RIFF') && begins(8, 'WEBP') ? 'image/webp' : null
}

/**
 * Returns null for bytes that are not UTF-8 or contain control characters, because text could not show them
 * faithfully.
 */
function plainTextOf(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    // oxlint-disable-next-line no-control-regex
    return /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/.test(text) ? null : text
  } catch {
    return null
  }
}

function lines(path: string, text: string, { from, most }: { from: number; most: number }): ToolResult {
  const all = text.split('\n')
  if (all.at(-1) === '') all.pop()
  const shown: string[] = []
  let characters = 0
  for (const line of all.slice(from - 1, from - 1 + most)) {
    const short = shorten(line, LINE_CHARACTERS)
    characters += short.length + 1
    if (characters > TEXT_CHARACTERS && shown.length > 0) break
    shown.push(
      short === line ? line : `${short}[the line has ${count(line.length)} characters: cut -c reads on]`,
    )
  }
  const last = from - 1 + shown.length
  const range = shown.length === 0 ? 'none of' : `lines ${from} to ${last} of`
  const head = `${JSON.stringify(path)}: ${range} ${count(all.length)} lines`
  const goOn = last < all.length && shown.length > 0 ? ` · go on with from_line ${last + 1}` : ''
  const mark = newMark()
  const hidden = text.match(
    /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu,
  )
  const warned = hidden === null ? '' : ` · holds ${count(hidden.length)} characters that cannot be seen`
  return textResult([`${head}${goOn}${warned}`, `<file ${mark}>`, ...shown, `</file ${mark}>`].join('\n'))
}

function binary(path: string, bytes: Buffer): ToolResult {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const head = `${JSON.stringify(path)}: ${count(bytes.length)} bytes that are no text, SHA-256 ${sha256}`
  if (bytes.length > BASE64_BYTES) {
    return textResult(
      `${head}. Too long to show: look into it with run_command, as by "file", "unzip -l" or "xxd | head".`,
    )
  }
  return textResult(`${head}, in base64:\n${bytes.toString('base64')}`)
}

export const fileTools: readonly Tool[] = [writeFile, readFile]
