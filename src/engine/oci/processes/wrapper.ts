// The wrapper of a background process (start.c): it starts the process in its machine, waits for it, and reports its pid
// and its exit on a pipe of its own. So no process on the host must be its parent, in either class, and an engine that did
// not start it learns how it ended. A unit that tampers with it only harms its own machine.

import { relayed, unset } from '../machine-programs/relay.ts'
import { toldCommandIn } from '../machine-programs/start.ts'
import { type Account, asAccount, type Process, withEnv } from '../runtime/bundle.ts'

export type Wrapped = {
  argv: string[]
  env: Record<string, string>
  cwd: string | null
  /** Null: the machine's own user. */
  account: Account | null
  marker: string
  /** Whether its output goes through the relay. */
  isRelayed: boolean
}

/** The description of the wrapped command for the runtime. */
export function wrappedProcess(
  main: Process,
  { argv, env, cwd, account, marker, isRelayed }: Wrapped,
): Process {
  return {
    ...(account ? asAccount(main, account) : main),
    args: isRelayed
      ? toldCommandIn(cwd ?? '', relayed(argv, marker), unset(marker))
      : toldCommandIn(cwd ?? '', argv, ''),
    env: [...withEnv(main.env, env), marker],
  }
}

export type Report = { pid: number | null; exitCode: number | null }

/** Parses what was reported so far; anything else written there is ignored. */
export function readReport(said: string): Report {
  const pid = /^pid (\d{1,7})$/m.exec(said)?.[1]
  const code = /^exit (\d{1,3})$/m.exec(said)?.[1]
  return { pid: pid === undefined ? null : Number(pid), exitCode: code === undefined ? null : Number(code) }
}
