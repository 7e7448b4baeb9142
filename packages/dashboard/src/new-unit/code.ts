// The same call by other means. What is in it is quoted as each language quotes, so it can be pasted as it is.

import type { Contract } from '@berth/sdk'
import { shellQuote } from '../recipes/params.ts'

export const languages = ['curl', 'CLI', 'TypeScript', 'Python'] as const
export type Language = (typeof languages)[number]

export function codeOf(language: Language, url: string, body: Contract.CreateFromSpec): string {
  const { spec, ...rest } = body
  const { image, expose: exposePort, ...own } = spec
  const options = { ...own, ...rest, ...(exposePort === undefined ? {} : { exposePort }) }
  switch (language) {
    case 'curl':
      return `curl ${url}/v1/units \\\n  -H "authorization: Bearer $BERTH_API_KEY" \\\n  -H "content-type: application/json" \\\n  -d ${shellQuote(JSON.stringify(body, null, 2))}`
    case 'CLI':
      return (
        commandOf(body) ??
        '# The CLI takes no secrets, and publishes the one port of a unit:\n# use another language for this.'
      )
    case 'TypeScript':
      return `import { Berth } from '@berth/sdk'\n\nconst berth = new Berth()\nconst unit = await berth.units.create(${JSON.stringify({ image, ...options }, null, 2)})`
    case 'Python': {
      const { exposePort: port, ...others } = options
      const named = { ...others, ...(port === undefined ? {} : { expose_port: port }) }
      const given = Object.entries(named).map(([name, value]) => `    ${name}=${python(value)},\n`)
      return `from berth import Berth\n\nberth = Berth()\nunit = berth.units.create(\n    ${python(image)},\n${given.join('')})`
    }
  }
}

/** Null where a flag is missing for it. */
function commandOf({ spec, stack, expose }: Contract.CreateFromSpec): string | null {
  const { name, image, size, ports = [], sleep, volume, env = {}, cmd, expose: port } = spec
  const plain = Object.entries(env)
  // A secret in a command line is none; and it publishes the only port.
  if (port !== undefined || plain.some(([, value]) => typeof value !== 'string')) return null
  const flag = (word: string, value: string | undefined) =>
    value === undefined ? [] : [`--${word} ${shellQuote(value)}`]
  const flags = [
    ...flag('name', name),
    ...flag('stack', stack),
    ...flag('size', size),
    ...flag('sleep', sleep),
    ...ports.flatMap((port) => flag('port', String(port))),
    ...plain.flatMap(([key, value]) => flag('env', `${key}=${value as string}`)),
    ...(volume === undefined ? [] : flag('volume', `${volume.mount}:${volume.gb ?? 2}`)),
    ...flag('expose', expose),
  ]
  const command = cmd === undefined ? [] : [`-- ${cmd.map(shellQuote).join(' ')}`]
  return ['berth run', ...flags, [shellQuote(image), ...command].join(' ')].join(' \\\n  ')
}

/** JSON, but for its three words, is Python. */
function python(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${python(each)}`)
      .join(', ')}}`
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}
