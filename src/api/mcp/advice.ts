// What a model does next after an error: which tool to call, with which argument.

import type { AppError, ErrorCode } from '../../contract/errors.ts'

/** By what was not found. */
const waysToFind: Record<string, string> = {
  unit: 'list_units shows the units there are: send the name, stack/name or id of one as unit.',
  stack: 'list_units shows the stack of each unit: send its name as stack.',
  recipe: 'list_recipes without arguments shows the recipes there are: send the name of one as recipe.',
  file: 'run_command with command "ls -la" and the directory as cwd shows what is there: send an absolute path as path, or make the file with write_file.',
  process:
    'See by read_process what runs in the background of the unit, with unit alone: send the id of one as process. run_command with background starts it again.',
  fork: 'list_units shows the copies that were made; fork makes another one.',
}

/** By code, `TOOL` for the one that was called. Null: the message says what to do. */
const ways = {
  validation: 'Call TOOL again with the arguments that are named here corrected.',
  unauthorized:
    'The credential of this connection is not accepted any more: tell your person to connect you again.',
  forbidden:
    'list_units shows the units that you can use, and get_limits what you may do. Tell your person if you need more.',
  policy_violation:
    'get_limits shows what your policy allows: call TOOL again within it, or ask your person to widen it.',
  quota_exceeded:
    'get_limits shows the numbers. Where units are too many, stop_unit or destroy_unit what is not needed, then call TOOL again.',
  payment_required:
    'Your person set this limit, or must pay for more: tell them. get_limits shows the numbers; the same call again changes nothing.',
  not_found: 'Check the name or id that you sent to TOOL; list_units shows what there is.',
  invalid_state:
    'get_unit with the same unit shows its state and what to do next: start_unit starts one that is stopped, read_logs tells why one ended.',
  conflict:
    'If an earlier call of yours made it, it is there: look with get_unit or list_units. Else call TOOL with another name.',
  payload_too_large:
    'Send less at once: write_file in several files, or let run_command fetch or make it inside of the unit.',
  unavailable: 'Nothing is wrong with the call: call TOOL again a little later.',
  request_timeout: 'Call TOOL again; run_command with background is for what takes long.',
  internal:
    'It is no fault of yours. Look whether it was done before you try again, and tell contact_support the request.',
  provider_error:
    'What was begun is cleaned up; the call can be sent again, unless the reason lies in the image or its command.',
  method_not_allowed: null,
  upgrade_required: null,
  unsupported_media_type: null,
  misdirected_request: null,
  headers_too_large: null,
} as const satisfies Record<ErrorCode, string | null>

export function adviceFor({ code, status, noun }: AppError, tool: string): string | null {
  const way =
    status === 402
      ? ways.payment_required
      : code === 'not_found'
        ? (waysToFind[noun ?? ''] ?? ways.not_found)
        : ways[code]
  return way === null ? null : way.replaceAll('TOOL', tool)
}
