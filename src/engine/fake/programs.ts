// What commands do in a fake machine: the few programs tests need, and a shell that knows just enough of
// `sh -c` to string them together. Killing a process makes its pending write or sleep reject.

import { constants } from 'node:os'
import type { ExecOutput } from '../engine.ts'
import { parseScript } from './shell.ts'

export type FakeProcess = {
  argv: string[]
  stdin: Buffer
  env: Record<string, string>
  cwd: string
  user: string
  hostname: string
  files: Map<string, Buffer>
  /** Waits for the reader, as a full pipe does. */
  write(stream: ExecOutput['stream'], data: Buffer): Promise<void>
  sleep(ms: number): Promise<void>
}

type Program = (process: FakeProcess, args: string[]) => Promise<number>

const CHUNK = 64 * 1024

const programs: Record<string, Program> = {
  true: async () => 0,
  false: async () => 1,
  echo: async (process, args) => {
    const newline = args[0] === '-n' ? '' : '\n'
    await print(process, args.slice(newline ? 0 : 1).join(' ') + newline)
    return 0
  },
  printf: async (process, [format, ...args]) => {
    // Only `%s`, with or without a newline, once for each argument.
    await print(process, args.map((arg) => `${arg}${format === '%s\\n' ? '\n' : ''}`).join(''))
    return 0
  },
  cat: async (process, args) => {
    if (args.length === 0) await process.write('stdout', process.stdin)
    for (const path of args) {
      const content = process.files.get(path)
      if (content === undefined) return await complain(process, `cat: ${path}: No such file or directory`, 1)
      await process.write('stdout', content)
    }
    return 0
  },
  sleep: async (process, [time = '']) => {
    await process.sleep(time === 'infinity' ? Infinity : Number(time) * 1000)
    return 0
  },
  head: async (process, args) => {
    const bytes = Number(args[1])
    for (let left = bytes; left > 0; left -= CHUNK) {
      await process.write('stdout', Buffer.alloc(Math.min(left, CHUNK)))
    }
    return 0
  },
  yes: async (process, [word = 'y']) => {
    const chunk = Buffer.from(`${word}\n`.repeat(Math.ceil(CHUNK / (word.length + 1))))
    for (;;) {
      await process.write('stdout', chunk)
      // A turn of the loop in between, so that timers and signals are not starved by a fast reader.
      await new Promise(setImmediate)
    }
  },
  test: async (process, [flag, path = '']) => (flag === '-f' && process.files.has(path) ? 0 : 1),
  rm: async (process, args) => {
    for (const path of args) process.files.delete(path)
    return 0
  },
  printenv: async (process, [name = '']) => {
    const value = process.env[name]
    if (value === undefined) return 1
    await print(process, `${value}\n`)
    return 0
  },
  pwd: async (process) => {
    await print(process, `${process.cwd}\n`)
    return 0
  },
  id: async (process) => {
    await print(process, `${process.user.split(':')[0] || '0'}\n`)
    return 0
  },
  hostname: async (process) => {
    await print(process, `${process.hostname}\n`)
    return 0
  },
  sh: runShell,
}

export function knowsProgram(name: string): boolean {
  return Object.hasOwn(programs, basename(name))
}

/** Runs a command to its exit code; rejects when it is killed. */
export async function runProgram(process: FakeProcess): Promise<number> {
  const [name = '', ...args] = process.argv
  if (process.files.has(name)) return await complain(process, `${name}: Permission denied`, 126)
  const program = Object.hasOwn(programs, basename(name)) ? programs[basename(name)] : undefined
  if (!program) return await complain(process, `${name}: not found`, 127)
  return await program(process, args)
}

async function runShell(process: FakeProcess, [flag, script = '']: string[]): Promise<number> {
  if (flag !== '-c') return 0
  let code = 0
  for (const statement of parseScript(script, process.env)) {
    if (statement.ifPrevious !== null && statement.ifPrevious !== (code === 0)) continue
    const [name, arg] = statement.argv
    if (name === 'exit') return arg === undefined || arg === '$?' ? code : Number(arg)
    // Only `kill -SIGNAL $$` is known: the shell ends itself.
    if (name === 'kill') return 128 + signalNumber(arg ?? '')
    code = await runProgram({ ...redirected(process, statement), argv: statement.argv })
  }
  return code
}

function redirected(
  process: FakeProcess,
  { target }: { target: { to: 'stderr' } | { path: string; append: boolean } | null },
): FakeProcess {
  if (target === null) return process
  if ('to' in target) return { ...process, write: (_stream, data) => process.write('stderr', data) }
  if (!target.append) process.files.set(target.path, Buffer.alloc(0))
  return {
    ...process,
    write: async (stream, data) => {
      if (stream === 'stderr') return await process.write(stream, data)
      const before = process.files.get(target.path) ?? Buffer.alloc(0)
      process.files.set(target.path, Buffer.concat([before, data]))
    },
  }
}

function signalNumber(text: string): number {
  const name = text.replace(/^-/, '')
  const signals: Record<string, number> = constants.signals
  return signals[`SIG${name}`] ?? Number(name)
}

async function print(process: FakeProcess, text: string): Promise<void> {
  await process.write('stdout', Buffer.from(text))
}

async function complain(process: FakeProcess, text: string, code: number): Promise<number> {
  await process.write('stderr', Buffer.from(`${text}\n`))
  return code
}

function basename(path: string): string {
  return path.replace(/^(?:\/usr)?\/bin\//, '')
}
