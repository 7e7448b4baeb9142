// The arguments of `npm run images --`.

import { parseArgs } from 'node:util'
import { type BuiltIn, referenceOf } from '../engine/oci/images/builtin.ts'
import { builtIns } from '../engine/oci/images/builtin-images.ts'

export const help = `The images on this host: built-in ones, made here from Debian packages, and those that were pulled.

  npm run images -- list [--json]
      every image: its digest, size, age, the version of its main package, how many units use it, and
      whether it is up to date

  npm run images -- check [--json]
      asks Debian what it has that is newer than the built-in images here were made of; exits with 1 when it
      cannot be asked. A running Berth rebuilds those by itself, "build" does it at once.

  npm run images -- build NAME…|--all
      builds built-in images that are missing or out of date: NAME is postgres, postgres:15 or
      berth.local/postgres:15. Units keep the build they were made of, new ones get the new one. Exits with 1
      when one could not be built.

  npm run images -- remove REFERENCE|DIGEST…
      removes images that no unit is made of, running or not; of a digest its beginning will do. Exits with 1
      when one stays. A built-in image is built again on its next use, another one pulled.

  npm run images -- remove --unused [--json]
      removes all that no unit is made of, but for the newest build of each built-in image`

export type ImagesCommand =
  | { kind: 'help' }
  | { kind: 'list'; json: boolean }
  | { kind: 'check'; json: boolean }
  | { kind: 'build'; definitions: BuiltIn[] }
  | { kind: 'remove'; named: string[] }
  | { kind: 'remove-unused'; json: boolean }

/** Throws a sentence that says what to type instead. */
export function parseCommand(args: string[]): ImagesCommand {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      json: { type: 'boolean' },
      all: { type: 'boolean' },
      unused: { type: 'boolean' },
    },
  })
  const { json = false, all = false, unused = false } = values
  const [verb, ...named] = positionals
  if (values.help || verb === undefined) return { kind: 'help' }
  if (all && verb !== 'build') throw usage('--all goes with build')
  if (unused && verb !== 'remove') throw usage('--unused goes with remove')
  if (json && (verb === 'build' || (verb === 'remove' && !unused))) throw usage(`${verb} has no --json`)
  switch (verb) {
    case 'list':
    case 'check':
      if (named.length > 0) throw usage(`${verb} takes nothing else`)
      return { kind: verb, json }
    case 'build':
      if (all === named.length > 0) throw usage('say which images to build, or --all')
      return { kind: 'build', definitions: all ? builtIns : named.map(getBuiltIn) }
    case 'remove':
      if (unused === named.length > 0) throw usage('say which images to remove, or --unused')
      return unused ? { kind: 'remove-unused', json } : { kind: 'remove', named }
    default:
      throw usage(`there is no "${verb}"; use list, check, build or remove`)
  }
}

function getBuiltIn(text: string): BuiltIn {
  const found = builtIns.find((each) => {
    const reference = referenceOf(each)
    return [reference, reference.replace('berth.local/', ''), each.name].includes(text)
  })
  if (found) return found
  throw usage(`there is no built-in image "${text}"; they are ${builtIns.map(referenceOf).join(', ')}`)
}

export function usage(problem: string): Error {
  return new Error(`${problem}. "npm run images -- --help" shows how it is used.`)
}
