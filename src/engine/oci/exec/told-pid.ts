// Which pid a command has in its machine: its first line says it, before the command is executed in the same process.

import type { TerminalRequest } from '../../exec.ts'
import type { OnOutput } from '../kernel/pipes.ts'
import { commandTellingPid } from '../machine-programs/start.ts'

/** The longest line that says a pid, with what a terminal adds to its end. */
const LINE_BYTES = 12

/** The command, which enters its directory itself, with that line, and its output without it. */
export function tellingPid(
  { argv, cwd }: Pick<TerminalRequest, 'argv' | 'cwd'>,
  onBegun: (pid: number) => void,
  onOutput: OnOutput,
): { argv: string[]; cwd: null; onOutput: OnOutput } {
  let head: Buffer | null = Buffer.alloc(0)
  return {
    argv: commandTellingPid(cwd ?? '', argv),
    cwd: null,
    onOutput: async (output) => {
      if (head === null || output.stream !== 'stdout') return await onOutput(output)
      head = Buffer.concat([head, output.data])
      const end = head.indexOf('\n')
      if (end < 0 && head.length <= LINE_BYTES) return
      const [said, rest] = [head, head.subarray(end + 1)]
      head = null
      const pid = /^(\d{1,9})\r?\n/.exec(said.toString('latin1', 0, LINE_BYTES))?.[1]
      if (pid === undefined) return await onOutput({ ...output, data: said })
      onBegun(Number(pid))
      if (rest.length > 0) await onOutput({ ...output, data: rest })
    },
  }
}
