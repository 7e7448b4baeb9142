import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/**
 * Starts a program of the lab in a network namespace, by `as` as another user or group, with `flags` for Node and
 * `env` beside this process's own.
 *
 * @param file Its name in this folder, without the ending.
 * @param given What it reads as its argument.
 * @returns The process, and its first message, which it sends once it is ready.
 */
export async function startIn(
  namespace: string,
  file: string,
  given: unknown,
  { as = [], flags = [], env = {} }: { as?: string[]; flags?: string[]; env?: Record<string, string> } = {},
): Promise<[ChildProcess, unknown]> {
  const script = new URL(`./${file}.ts`, import.meta.url).pathname
  const child = fork(script, [JSON.stringify(given)], {
    execPath: 'nsenter',
    execArgv: [`--net=${namespace}`, ...as, process.execPath, ...flags],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  })
  const [message] = (await once(child, 'message')) as [unknown]
  return [child, message]
}
