// The fields of the form for a new unit, and the body of `POST /v1/units` that is made of them.

import type { Contract } from '@berth/sdk'
import { envFault, envValueOf, type Pair } from '../recipes/params.ts'

export type Size = NonNullable<Contract.UnitSpec['size']>
export type Fields = {
  name: string
  image: string
  stack: string
  size: Size
  /** As typed: numbers with commas or spaces between them. */
  ports: string
  expose: 'no' | 'private' | 'public'
  sleep: string
  command: string
  volumeGb: string
  volumeAt: string
  /** Containers may run in it. */
  nested: boolean
  env: Pair[]
}

export const sizes = ['nano', 'small', 'medium', 'large'] as const satisfies readonly Size[]

export const emptyFields: Fields = {
  name: '',
  image: 'berth.local/python:3.11',
  stack: '',
  size: 'small',
  ports: '',
  expose: 'no',
  sleep: '',
  command: '',
  volumeGb: '',
  volumeAt: '/data',
  nested: false,
  env: [],
}

export type Asked = { body: Contract.CreateFromSpec; faults: Partial<Record<keyof Fields, string>> }

/** Only what differs from the defaults, so that the call says what was chosen. */
export function askedOf(fields: Fields): Asked {
  const text = (name: 'name' | 'image' | 'stack' | 'sleep' | 'command') => fields[name].trim()
  const faults: Asked['faults'] = {}
  if (text('image') === '') faults.image = 'Choose an image.'
  if (text('name') !== '' && !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text('name')))
    faults.name = 'Use lower-case letters, digits and hyphens.'
  // What is no number has no place in the call, which is also shown as code.
  const typed = fields.ports.split(/[\s,]+/).filter(Boolean)
  const ports = typed.filter((port) => /^[1-9]\d{0,4}$/.test(port) && Number(port) < 65_536)
  if (ports.length < typed.length) faults.ports = 'Numbers up to 65535.'
  else if (fields.expose !== 'no' && ports.length === 0) faults.ports = 'Which port should be published?'
  if (text('sleep') !== '' && !/^(?:never|[1-9][0-9]{0,4}[mhd])$/.test(text('sleep')))
    faults.sleep = 'Use a number with m, h or d, or never.'
  const isVolume = /^[1-9]\d{0,2}$/.test(fields.volumeGb.trim())
  if (fields.volumeGb.trim() !== '' && !isVolume) faults.volumeGb = 'A number of GB.'
  const unchosen = envFault(fields.env)
  if (unchosen !== undefined) faults.env = unchosen
  const env = envOf(fields.env)
  const spec: Contract.UnitSpec = {
    name: text('name') || nameOf(text('image')),
    image: text('image'),
    ...(fields.size !== 'small' && { size: fields.size }),
    ...(ports.length > 0 && { ports: ports.map(Number) }),
    ...(fields.expose !== 'no' && ports.length > 1 && { expose: Number(ports[0]) }),
    ...(text('sleep') !== '' && { sleep: text('sleep') }),
    ...(text('command') !== '' && { cmd: ['sh', '-c', text('command')] }),
    ...(isVolume && {
      volume: { mount: fields.volumeAt.trim() || '/data', gb: Number(fields.volumeGb) },
    }),
    ...(fields.nested && { nested: true }),
    ...(Object.keys(env).length > 0 && { env }),
  }
  const body = {
    spec,
    ...(text('stack') !== '' && { stack: text('stack') }),
    ...(fields.expose !== 'no' && { expose: fields.expose }),
  }
  return { body, faults }
}

/** `docker.io/library/nginx:1` is called `nginx`. */
function nameOf(image: string): string {
  const last =
    image
      .replace(/[:@].*$/, '')
      .split('/')
      .at(-1) ?? ''
  const name = last
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return name.slice(0, 32).replace(/-$/, '') || 'unit'
}

function envOf(pairs: readonly Pair[]): NonNullable<Contract.UnitSpec['env']> {
  const named = pairs.filter(({ name }) => name.trim() !== '')
  return Object.fromEntries(named.map((pair) => [pair.name.trim(), envValueOf(pair)]))
}
