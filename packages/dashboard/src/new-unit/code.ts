// The create of a unit in each language, quoted as that language quotes, so that it can be pasted unchanged.

import type { Contract } from '@berth/sdk'
import {
  curlCreate,
  pythonProgram,
  shellLines,
  shellQuote,
  toolCall,
  typescriptProgram,
} from '../ui/code-snippets.ts'

export const languages = ['curl', 'CLI', 'TypeScript', 'Python', 'MCP'] as const
export type Language = (typeof languages)[number]

export function codeOf(language: Language, url: string, body: Contract.CreateFromSpec): string {
  const { spec, ...rest } = body
  const { image, expose: exposePort, ...own } = spec
  const options = { ...own, ...rest, ...(exposePort === undefined ? {} : { exposePort }) }
  switch (language) {
    case 'curl':
      return curlCreate(url, body)
    case 'CLI':
      return (
        commandOf(body) ??
        '# The CLI makes no secrets of a unit, and publishes the one port of a unit:\n# use another language for this.'
      )
    case 'TypeScript':
      return typescriptProgram(
        `const unit = await berth.units.create(${JSON.stringify({ image, ...options }, null, 2)})`,
      )
    case 'MCP':
      // The tool publishes the one port of a unit, and knows no containers inside.
      return exposePort === undefined && own.nested === undefined
        ? toolCall('create_unit', { image, ...own, ...rest })
        : '# The tool create_unit has no argument for this:\n# use another language.'
    case 'Python': {
      const { exposePort: port, ...others } = options
      const named = { ...others, ...(port === undefined ? {} : { expose_port: port }) }
      return pythonProgram('unit', 'units.create', image, named)
    }
  }
}

/** Null where a flag is missing for it. */
function commandOf({ spec, stack, expose }: Contract.CreateFromSpec): string | null {
  const { name, image, size, ports = [], sleep, volume, env = {}, cmd, expose: port } = spec
  const variables = Object.entries(env)
  // A secret in a command line is none; and it publishes the only port.
  if (port !== undefined || variables.some(([, value]) => typeof value === 'object' && 'secret' in value))
    return null
  const flag = (word: string, value: string | undefined) =>
    value === undefined ? [] : [`--${word} ${shellQuote(value)}`]
  const flags = [
    ...flag('name', name),
    ...flag('stack', stack),
    ...flag('size', size),
    ...flag('sleep', sleep),
    ...ports.flatMap((port) => flag('port', String(port))),
    ...variables.flatMap(([key, value]) =>
      typeof value === 'object' && 'teamSecret' in value
        ? flag('secret', key === value.teamSecret ? key : `${key}=${value.teamSecret}`)
        : flag('env', `${key}=${value as string}`),
    ),
    ...(volume === undefined ? [] : flag('volume', `${volume.mount}:${volume.gb ?? 2}`)),
    ...flag('expose', expose),
  ]
  const command = cmd === undefined ? [] : [`-- ${cmd.map(shellQuote).join(' ')}`]
  return shellLines(['berth run', ...flags, [shellQuote(image), ...command].join(' ')])
}
