// The tools of an agent, done in a unit over the API: the vendor's loop calls them, and nothing of the vendor is in the unit.

import { BerthError, type Unit } from '../../sdk/src/index.ts'

export type ToolCall = {
  /** Of this call alone: a command that is asked for again under it runs once. */
  id: string
  input: Record<string, unknown>
  signal?: AbortSignal | undefined
}

export type Tool = {
  name: string
  description: string
  /** JSON Schema of the fields of its input. */
  properties: Record<string, object>
  required: string[]
  /** Throws `ToolFailure` with what the agent is told. */
  run: (call: ToolCall) => Promise<string>
}

export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
}

const WORKDIR = '/workspace'
/** Of the answer to a command, its end. */
const MAX_OUTPUT = 100_000
const MAX_FILE_BYTES = 262_144
/** The vendor's library gives every call two minutes, and then tells the agent nothing of what it printed. */
const COMMAND_MS = 115_000

/**
 * Directory, exported variables and functions last from one command to the next in a file of the unit, so that they outlive
 * sleep and restarts of either side. `$1` is the file, `$2` the command. It forks for nothing but the command: in gVisor each
 * fork costs as much as the rest. So the file is written in place, and one that a full disk cut short is read as far as it goes.
 */
const SHELL = `exec 2>&1 </dev/null
{ cd ${WORKDIR} || { mkdir -p ${WORKDIR} && cd ${WORKDIR}; }; } 2>/dev/null
[ -f "$1" ] && . "$1" >/dev/null 2>&1
__berth_state=$1
trap '__berth_code=$?; { export -p; declare -f; printf "cd %q\\n" "$PWD"; } >"$__berth_state" 2>/dev/null; exit $__berth_code' EXIT
eval "$2"`
const STATE = '/var/tmp/berth-agent-shell'

const text = { type: 'string' }

/** `unit`: asked for with each call, so that one that was made again is found. */
export function toolsOf(unit: () => Promise<Unit>): Tool[] {
  const bash = commandRunner(unit)
  return [
    {
      name: 'bash',
      description: 'Run a bash command. Its directory, variables and functions last for the next one.',
      properties: { command: text, restart: { type: 'boolean' }, timeout_ms: { type: 'integer' } },
      required: [],
      run: async (call) => await runBash(bash, call),
    },
    {
      name: 'read',
      description: 'Read a UTF-8 text file relative to the working directory.',
      properties: { file_path: text, view_range: { type: 'array', items: { type: 'integer' } } },
      required: ['file_path'],
      run: async ({ input }) => await readFile(await unit(), input),
    },
    {
      name: 'write',
      description: 'Write a UTF-8 text file relative to the working directory.',
      properties: { file_path: text, content: text },
      required: ['file_path', 'content'],
      run: async ({ input }) => {
        const [path, content] = [pathOf(input), stringOf(input, 'content')]
        if (Buffer.byteLength(content) > MAX_FILE_BYTES) throw tooLarge(path)
        await told((await unit()).files.write(path, content))
        return `wrote ${path}`
      },
    },
    {
      name: 'edit',
      description: 'Replace a text in a file, which must be there once unless replace_all.',
      properties: {
        file_path: text,
        old_string: text,
        new_string: text,
        replace_all: { type: 'boolean' },
      },
      required: ['file_path', 'old_string', 'new_string'],
      run: async ({ input }) => await editFile(await unit(), input),
    },
    {
      name: 'glob',
      description: 'Files that match a pattern, newest first.',
      properties: { pattern: text, path: text },
      required: ['pattern'],
      run: async ({ id, input, signal }) => {
        const args = [stringOf(input, 'pattern'), directoryOf(input)]
        return await listing(bash, { id, args, script: GLOB, signal })
      },
    },
    {
      name: 'grep',
      description: 'Lines of files that match a regular expression.',
      properties: { pattern: text, path: text },
      required: ['pattern'],
      run: async ({ id, input, signal }) => {
        const args = [stringOf(input, 'pattern'), directoryOf(input)]
        return await listing(bash, { id, args, script: GREP, signal })
      },
    },
  ]
}

const GLOB =
  'shopt -s globstar dotglob; cd -- "$2" && compgen -G "$1" | head -n 20000 | ' +
  'xargs -r -d "\\n" stat --printf "%Y\\t%n\\n" -- | sort -rn | cut -f 2- | head -n 200'
const GREP =
  'cd -- "$2" && if command -v rg >/dev/null; then rg --no-heading --line-number --max-columns 500 -e "$1" . ; ' +
  'else grep -rnE -e "$1" . ; fi | head -n 500'

type Asked = { id: string; cmd: string[]; timeoutMs: number; signal?: AbortSignal | undefined }
type Ran = { output: string; exitCode: number | null; timedOut: boolean; isLost: boolean }
type RunCommand = (asked: Asked) => Promise<Ran>

/** One after the other, as in one shell. A process keeps its unit awake, and starts once for the id of its call. */
function commandRunner(unit: () => Promise<Unit>): RunCommand {
  let before: Promise<unknown> = Promise.resolve()
  return async (asked) => {
    const mine = before.then(async () => await runOnce(await unit(), asked))
    before = mine.catch(() => {})
    return await mine
  }
}

async function runOnce(unit: Unit, { id, cmd, timeoutMs, signal }: Asked): Promise<Ran> {
  const options = { idempotencyKey: `agent-call-${id}`.slice(0, 200), keepsAwake: true, tag: 'agent' }
  const process = await told(unit.processes.start(cmd, options))
  let [output, timedOut] = ['', false]
  const over = AbortSignal.timeout(timeoutMs)
  try {
    const until = AbortSignal.any([over, ...(signal ? [signal] : [])])
    for await (const piece of process.follow({ signal: until })) {
      output = (output + piece.text).slice(-2 * MAX_OUTPUT)
    }
  } catch (error) {
    if (!over.aborted) throw error
    timedOut = true
    await process.signal('KILL').catch(() => {})
  }
  const { exitCode, state } = process
  return { output: lastOf(output), exitCode, timedOut, isLost: state === 'lost' }
}

async function runBash(run: RunCommand, { id, input, signal }: ToolCall): Promise<string> {
  const { command, restart, timeout_ms: asked } = input
  if (typeof command !== 'string' || command === '') {
    if (restart !== true) throw new ToolFailure('bash: command is required')
    await run({ id, cmd: ['rm', '-f', STATE], timeoutMs: COMMAND_MS, signal })
    return 'bash session restarted'
  }
  const timeoutMs = typeof asked === 'number' && asked > 0 ? Math.min(asked, COMMAND_MS) : COMMAND_MS
  const fresh = restart === true ? 'rm -f "$1"; ' : ''
  const cmd = ['bash', '-c', `${fresh}${SHELL}`, 'bash', STATE, command]
  const { output, exitCode, timedOut, isLost } = await run({ id, cmd, timeoutMs, signal })
  if (timedOut)
    throw new ToolFailure(
      `${output}\nbash: the command ran longer than ${timeoutMs} ms and was ended; begin longer work in the background`,
    )
  if (isLost) throw new ToolFailure(`${output}\nbash: the unit was started again while the command ran`)
  if (exitCode !== 0) throw new ToolFailure(output === '' ? `exit ${exitCode}` : output)
  return output
}

type Listing = { id: string; args: string[]; script: string; signal?: AbortSignal | undefined }

async function listing(run: RunCommand, { id, args, script, signal }: Listing): Promise<string> {
  const cmd = ['bash', '-c', `exec 2>&1; mkdir -p ${WORKDIR} 2>/dev/null; ${script}`, 'bash', ...args]
  const { output } = await run({ id, cmd, timeoutMs: COMMAND_MS, signal })
  return output === '' ? 'no matches' : output
}

async function readFile(unit: Unit, input: Record<string, unknown>): Promise<string> {
  const path = pathOf(input)
  const content = await readText(unit, path)
  const { view_range: range } = input
  if (!Array.isArray(range)) return content
  const [from = 1, to = -1] = range.filter((each): each is number => Number.isInteger(each))
  return content
    .split('\n')
    .slice(Math.max(0, from - 1), to < 0 ? undefined : to)
    .join('\n')
}

async function editFile(unit: Unit, input: Record<string, unknown>): Promise<string> {
  const path = pathOf(input)
  const [old, next] = [stringOf(input, 'old_string'), stringOf(input, 'new_string')]
  if (old === '') throw new ToolFailure('edit: old_string must not be empty')
  const content = await readText(unit, path)
  const count = content.split(old).length - 1
  if (count === 0) throw new ToolFailure(`edit: old_string is not in ${path}`)
  if (count > 1 && input['replace_all'] !== true)
    throw new ToolFailure(`edit: old_string is in ${path} ${count} times`)
  const edited = content.split(old).join(next)
  if (Buffer.byteLength(edited) > MAX_FILE_BYTES) throw tooLarge(path)
  await told(unit.files.write(path, edited))
  return `edited ${path} (${count} replaced)`
}

async function readText(unit: Unit, path: string): Promise<string> {
  const { bytes } = await told(unit.files.facts(path))
  if (bytes > MAX_FILE_BYTES) throw tooLarge(path)
  return await told(unit.files.readText(path))
}

/** What the service says of the call is for the agent; that it does not answer is not. */
async function told<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof BerthError && error.status !== null && error.status < 500)
      throw new ToolFailure(error.message)
    throw error
  }
}

function pathOf(input: Record<string, unknown>): string {
  const path = stringOf(input, 'file_path')
  return path.startsWith('/') ? path : `${WORKDIR}/${path}`
}

function directoryOf({ path }: Record<string, unknown>): string {
  if (typeof path !== 'string' || path === '') return WORKDIR
  return path.startsWith('/') ? path : `${WORKDIR}/${path}`
}

function stringOf(input: Record<string, unknown>, field: string): string {
  const value = input[field]
  if (typeof value === 'string' && !value.includes('\0')) return value
  throw new ToolFailure(`${field} must be a text`)
}

function tooLarge(path: string): ToolFailure {
  return new ToolFailure(`${path} is larger than ${MAX_FILE_BYTES} bytes`)
}

function lastOf(output: string): string {
  const trimmed = output.replace(/\n+$/, '')
  return trimmed.length <= MAX_OUTPUT ? trimmed : `[output truncated]\n${trimmed.slice(-MAX_OUTPUT)}`
}
