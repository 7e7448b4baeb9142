// `berth help`, and `--help` of each command.

import { closest, type Command, globalOptions, type Option } from './args.ts'
import { commands, groups } from './commands.ts'
import { otherCommands } from './docker-habits.ts'
import { print } from './output.ts'

export async function helpOrUnknown(words: string[]): Promise<number> {
  const isAsked = words.length === 0 || ['help', '--help', '-h'].includes(words[0] ?? '')
  if (isAsked && words.length < 2) {
    await print(overview())
    return 0
  }
  const name = (isAsked ? words.slice(1) : words).filter((word) => word !== '--json').join(' ')
  const command = commands[name]
  if (command) return await printHelp(command)
  const [first = ''] = isAsked ? words.slice(1) : words
  const group = words.find((word) => Object.keys(commands).some((each) => each.startsWith(`${word} `)))
  const verbs = Object.keys(commands).filter((each) => group !== undefined && each.startsWith(`${group} `))
  const near = closest(first, [...new Set(Object.keys(commands).map((each) => each.split(' ')[0] ?? ''))])
  const hint =
    verbs.length > 0
      ? `berth ${verbs.join(', berth ')}`
      : (otherCommands[first] ?? (near === null ? 'berth help' : `berth ${near}`))
  const { exitCodes, Failure, tell } = await import('./failure.ts')
  const typed = group === undefined ? first : name
  const unknown = new Failure(`There is no command "${typed}".`, {
    hint,
    exitCode: exitCodes.usage,
    code: 'usage',
  })
  return tell(unknown, '', words.includes('--json'))
}

export async function printHelp(command: Command): Promise<number> {
  await print(helpOf(command))
  return 0
}

/** Of a command: how it is called, its options, examples. */
export function helpOf({ name, about, usage, options, examples }: Command): string {
  const lines = [about, '', `Usage: berth ${name} ${usage}`.trimEnd(), '']
  lines.push(...optionLines({ ...options, ...globalOptions }), '', 'Examples:')
  for (const [line, does] of examples) lines.push(`  berth ${line}`, `      ${does}`)
  return lines.join('\n')
}

function optionLines(options: Record<string, Option>): string[] {
  const rows = Object.entries(options).map(([name, { short, value, about }]): [string, string] => [
    `  ${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    about,
  ])
  const width = Math.max(...rows.map(([left]) => left.length))
  return ['Options:', ...rows.map(([left, about]) => `${left.padEnd(width)}  ${about}`)]
}

function overview(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = ['Container units for AI agents.', '', 'Usage: berth COMMAND', '']
  for (const [title, names] of Object.entries(groups)) {
    lines.push(`${title}:`)
    for (const name of names) lines.push(`  ${name.padEnd(width)}  ${commands[name]?.about ?? ''}`)
    lines.push('')
  }
  return [...lines, '`berth COMMAND --help` has examples. UNIT is a name, STACK/NAME or an id.'].join('\n')
}
