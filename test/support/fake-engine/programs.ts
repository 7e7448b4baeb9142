// What commands do in a fake machine: the few programs tests need, and a shell that knows just enough of
// `sh -c` to string them together. Killing a process makes its pending write or sleep reject.

import { constants } from 'node:os'
import type { ExecOutput } from '../../../src/engine/exec.ts'
import { parseScript } from './shell.ts'

export type FakeProcess = {
  argv: string[]
  stdin: () => Promise<Buffer>
  env: Record<string, string>
  cwd: string
  user: string
  hostname: string
  files: Map<string, Buffer>
  /** Waits for the reader, as a full pipe does. */
  write(stream: ExecOutput['stream'], data: Buffer): Promise<void>
  sleep(ms: number): Promise<void>
}

type Program = (self: FakeProcess, args: string[]) => Promise<number>

const CHUNK = 64 * 1024

const programs: Record<string, Program> = {
  true: async () => 0,
  false: async () => 1,
  echo: async (self, args) => {
    const newline = args[0] === '-n' ? '' : '\n'
    await print(self, args.slice(newline ? 0 : 1).join(' ') + newline)
    return 0
  },
  printf: async (self, [format, ...args]) => {
    // Only `%s`, with or without a newline, once for each argument.
    await print(self, args.map((arg) => `${arg}${format === '%s\\n' ? '\n' : ''}`).join(''))
    return 0
  },
  cat: async (self, args) => {
    if (args.length === 0) await self.write('stdout', await self.stdin())
    for (const path of args) {
      const content = self.files.get(path)
      if (content === undefined) return await complain(self, `cat: ${path}: No such file or directory`, 1)
      await self.write('stdout', content)
    }
    return 0
  },
  sleep: async (self, [time = '']) => {
    await self.sleep(time === 'infinity' ? Infinity : Number(time) * 1000)
    return 0
  },
  head: async (self, args) => {
    const bytes = Number(args[1])
    for (let left = bytes; left > 0; left -= CHUNK) {
      await self.write('stdout', Buffer.alloc(Math.min(left, CHUNK)))
    }
    return 0
  },
  yes: async (self, [word = 'y']) => {
    const chunk = Buffer.from(`${word}\n`.repeat(Math.ceil(CHUNK / (word.length + 1))))
    for (;;) {
      await self.write('stdout', chunk)
      // A turn of the loop in between, so that timers and signals are not starved by a fast reader.
      await new Promise(setImmediate)
    }
  },
  test: async (self, [flag, path = '']) => (flag === '-f' && self.files.has(path) ? 0 : 1),
  rm: async (self, args) => {
    for (const path of args) self.files.delete(path)
    return 0
  },
  mv: async (self, args) => {
    const [from = '', to = ''] = args.slice(args.indexOf('--') + 1)
    const content = self.files.get(from)
    if (!content) return await complain(self, `mv: ${from}: No such file or directory`, 1)
    self.files.set(to, content)
    self.files.delete(from)
    return 0
  },
  printenv: async (self, [name = '']) => {
    const value = self.env[name]
    if (value === undefined) return 1
    await print(self, `${value}\n`)
    return 0
  },
  pwd: async (self) => {
    await print(self, `${self.cwd}\n`)
    return 0
  },
  id: async (self) => {
    await print(self, `${self.user.split(':')[0] || '0'}\n`)
    return 0
  },
  hostname: async (self) => {
    await print(self, `${self.hostname}\n`)
    return 0
  },
  // For the healthcheck of a recipe.
  'redis-cli': async (self) => {
    await print(self, 'PONG\n')
    return 0
  },
  sh: runShell,
}

export function knowsProgram(name: string): boolean {
  return Object.hasOwn(programs, basename(name))
}

/** Runs a command to its exit code; rejects when it is killed. */
export async function runProgram(self: FakeProcess): Promise<number> {
  const [name = '', ...args] = self.argv
  if (self.files.has(name)) return await complain(self, `${name}: Permission denied`, 126)
  const program = Object.hasOwn(programs, basename(name)) ? programs[basename(name)] : undefined
  if (!program) return await complain(self, `${name}: not found`, 127)
  return await program(self, args)
}

async function runShell(self: FakeProcess, [flag, script = '']: string[]): Promise<number> {
  if (flag !== '-c') return 0
  let code = 0
  for (const statement of parseScript(script, self.env)) {
    if (statement.ifPrevious !== null && statement.ifPrevious !== (code === 0)) continue
    const [name, arg] = statement.argv
    if (name === 'exit') return arg === undefined || arg === '$?' ? code : Number(arg)
    // Only `kill -SIGNAL $$` is known: the shell ends itself.
    if (name === 'kill') return 128 + signalNumber(arg ?? '')
    code = await runProgram({ ...redirected(self, statement), argv: statement.argv })
  }
  return code
}

function redirected(
  self: FakeProcess,
  { target }: { target: { to: 'stderr' } | { path: string; append: boolean } | null },
): FakeProcess {
  if (target === null) return self
  if ('to' in target) return { ...self, write: (_stream, data) => self.write('stderr', data) }
  if (!target.append) self.files.set(target.path, Buffer.alloc(0))
  return {
    ...self,
    write: async (stream, data) => {
      if (stream === 'stderr') return await self.write(stream, data)
      const before = self.files.get(target.path) ?? Buffer.alloc(0)
      self.files.set(target.path, Buffer.concat([before, data]))
    },
  }
}

function signalNumber(text: string): number {
  const name = text.replace(/^-/, '')
  const signals: Record<string, number> = constants.signals
  return signals[`SIG${name}`] ?? Number(name)
}

async function print(self: FakeProcess, text: string): Promise<void> {
  await self.write('stdout', Buffer.from(text))
}

async function complain(self: FakeProcess, text: string, code: number): Promise<number> {
  await self.write('stderr', Buffer.from(`${text}\n`))
  return code
}

function basename(path: string): string {
  return path.replace(/^(?:\/usr)?\/bin\//, '')
}
