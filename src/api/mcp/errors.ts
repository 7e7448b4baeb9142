// Writes an error so that a model can act on it. What to do comes first, because clients cut long errors at the end.

import type { AppError, Issue } from '../../contract/errors.ts'
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
  requestId: string,
  printed: readonly { name: string; cut: Cut }[] = [],
): ToolResult {
  const advice = adviceFor(error)
  const lines = [
    `${error.code}: ${toldMessage(error)}`,
    ...(advice === null ? [] : [advice]),
    ...(error.retryAfterS === null ? [] : [`Try again in ${error.retryAfterS} s.`]),
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

function adviceFor({ code, status }: AppError): string | null {
  if (status === 402) {
    return 'Your person set this limit, or must pay for more: tell them. get_limits shows the numbers; the same call again changes nothing.'
  }
  switch (code) {
    case 'conflict':
      return 'If an earlier call of yours made it, it is there: look with get_unit or list_units. Else take another name.'
    case 'not_found':
      return 'list_units shows the units there are, and read_process what runs in the background of one.'
    case 'internal':
      return 'It is no fault of yours. Look whether it was done before you try again, and tell contact_support the request.'
    case 'provider_error':
      return 'What was begun is cleaned up; the call can be sent again, unless the reason lies in the image or its command.'
    default:
      return null
  }
}
