// `berth completion`: prints a few lines for a shell, which call `berth __complete` for candidates.

import { globalOptions, UsageError } from '../args.ts'
import { commands, findCommand } from '../commands.ts'
import type { Context } from '../context.ts'
import { print } from '../output.ts'

const scripts: Record<string, string> = {
  bash: `_berth() {
  local IFS=$'\\n'
  COMPREPLY=($(berth __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _berth berth`,
  zsh: `_berth() {
  local -a found
  found=("\${(@f)$(berth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n $found ]] && compadd -a found || _files
}
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
compdef _berth berth`,
  fish: `complete -c berth -a '(set -l words (commandline -opc)[2..]; berth __complete -- $words (commandline -ct) 2>/dev/null)'`,
}

/** A person is waiting for the completion. */
const PATIENCE_MS = 1500

export async function completion({ args }: Context): Promise<void> {
  const shell = args.args[0] ?? ''
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (script === undefined) throw new UsageError(`"${shell}" is none of ${Object.keys(scripts).join(', ')}`)
  await print(script)
}

/** One line for each; nothing where they cannot be had. */
export async function candidates(context: Context): Promise<void> {
  const words = context.args.rest
  const last = words.at(-1) ?? ''
  for (const each of await allFor(context, words.slice(0, -1), last))
    if (each.startsWith(last)) await print(each)
}

async function allFor(context: Context, before: string[], last: string): Promise<string[]> {
  const [command, behind] = findCommand(before)
  if (!command) {
    const at = before.length
    const names = Object.keys(commands).map((name) => name.split(' '))
    return [
      ...new Set(
        names
          .filter((name) => before.every((word, index) => name[index] === word))
          .map((name) => name[at] ?? ''),
      ),
    ]
  }
  if (last.startsWith('-'))
    return Object.keys({ ...command.options, ...globalOptions }).map((name) => `--${name}`)
  const given = behind.filter((word) => !word.startsWith('-')).length
  return given < command.args[1] ? await namesFor(context, command.completes).catch(() => []) : []
}

async function namesFor(
  context: Context,
  what: 'units' | 'stacks' | 'recipes' | undefined,
): Promise<string[]> {
  if (what === undefined) return []
  const { units, stacks, recipes } = context.berth()
  const signal = AbortSignal.timeout(PATIENCE_MS)
  if (what === 'units') return (await units.list({ signal, limit: 200 }).page()).items.map(({ name }) => name)
  if (what === 'stacks')
    return (await stacks.list({ signal, limit: 200 }).page()).items.map(({ name }) => name)
  return (await recipes.list({ signal })).map(({ name }) => name)
}
