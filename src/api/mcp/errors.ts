// Writes an error so that a model can act on it. What to do comes first, because clients cut long errors at the end.

import { type AppError, type Issue, tryAgainIn } from '../../contract/errors.ts'
import { adviceFor } from './advice.ts'
import { cleanLine } from './clean.ts'
import { type Cut, recut, shorten } from './cut.ts'
import { fence, newMark } from './fence.ts'
import type { ToolResult } from './tool.ts'

const ERROR_LENGTH = 4000
const ISSUES = 10
/** Of each stream: the whole stays below where clients cut an error. */
const PRINTED_LENGTH = 3000

/** `printed`: what a command had said before it came to this. */
export function errorResult(
  error: AppError,
  tool: string,
  requestId: string,
  printed: readonly { name: string; cut: Cut }[] = [],
): ToolResult {
  const advice = adviceFor(error, tool)
  const lines = [
    `${error.code}: ${toldMessage(error)}`,
    ...(advice === null ? [] : [advice]),
    ...(error.retryAfterS === null ? [] : [tryAgainIn(error.retryAfterS)]),
    `request ${requestId}`,
  ]
  const mark = newMark()
  const hint = 'send it to a file, and read_file that once the unit runs again'
  const fenced = printed
    .filter(({ cut }) => cut.total > 0)
    .map(({ name, cut }) => fence(name, mark, recut(cut, PRINTED_LENGTH), hint))
  const told = [shorten(lines.join('\n'), ERROR_LENGTH), ...fenced]
  return { content: [{ type: 'text', text: told.join('\n') }], isError: true }
}

/** Names the refused fields as the tool's arguments do. */
function toldMessage({ code, message, details }: AppError): string {
  if (code !== 'validation' || !Array.isArray(details)) return cleanLine(message, ERROR_LENGTH / 2)
  const issues = (details as Issue[]).slice(0, ISSUES).map(({ path, message: what }) => {
    const argument = argumentOf(path)
    const isNamed = argument === '' || what.startsWith(`${argument} `)
    return cleanLine(isNamed ? what : `${argument}: ${what}`, 500)
  })
  return issues.join('; ')
}

/** Fields of an operation's body that the tool takes as arguments of another name. */
const argumentNames: Record<string, string> = {
  cmd: 'command or argv',
  contentBase64: 'base64',
  timeoutMs: 'timeout_seconds',
  waitTimeoutMs: 'wait_seconds',
  limit: 'lines or limit',
}

function argumentOf(path: string): string {
  if (path.startsWith('spec.')) return path.slice('spec.'.length).replace(/^healthcheck\.cmd/, 'healthcheck')
  const [field = '', ...rest] = path.split('.')
  return [argumentNames[field] ?? field, ...rest].join('.')
}
