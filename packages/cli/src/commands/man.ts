// `berth man`: the manual page, written from the descriptions of the commands.

import { globalOptions, type Option } from '../args.ts'
import { commands, groups } from '../commands.ts'
import { type Context, version } from '../context.ts'
import { print } from '../output.ts'

export async function man(_context: Context): Promise<void> {
  await print(manualPage())
}

/** In the language of man(7). */
function manualPage(): string {
  const lines = [
    `.TH BERTH 1 "" "berth ${version}" "User Commands"`,
    '.SH NAME',
    'berth \\- container units for AI agents',
    '.SH SYNOPSIS',
    '.B berth',
    '.I COMMAND',
    '[ARGUMENTS]',
    '.SH DESCRIPTION',
    line(
      'UNIT is a name, STACK/NAME or an id. A command in a unit begins with the first word behind the unit, or after --.',
    ),
  ]
  for (const [title, names] of Object.entries(groups)) {
    lines.push(`.SH ${title.toUpperCase()}`)
    for (const name of names) lines.push(...commandLines(name))
  }
  lines.push('.SH OPTIONS OF EVERY COMMAND', ...optionLines(globalOptions))
  return lines.join('\n')
}

function commandLines(name: string): string[] {
  const command = commands[name]
  if (command === undefined) return []
  const examples = command.examples.flatMap(([typed, does]) => [
    '.TP',
    `.B ${line(`berth ${typed}`)}`,
    line(does),
  ])
  return [
    `.SS berth ${line(`${name} ${command.usage}`.trim())}`,
    line(`${command.about}.`),
    ...optionLines(command.options),
    ...examples,
  ]
}

function optionLines(options: Record<string, Option>): string[] {
  return Object.entries(options).flatMap(([name, { short, value, about }]) => {
    const names = `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
    return ['.TP', `.B ${line(names)}`, line(about)]
  })
}

/** A line of text: hyphens stay such, and no line is a request to man. */
function line(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '...')
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped
}
