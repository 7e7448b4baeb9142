// `berth cp`: copies files and folders into or out of a unit, as `cp -r` does. What is new has the mode of its source;
// what exists keeps its mode and owner, and a link at the target is written through.

import { UsageError } from '../args.ts'
import type { Context } from '../context.ts'
import { copyIn } from '../copy-in.ts'
import { copyOut } from '../copy-out.ts'
import type { UnitPlace } from '../local-files.ts'
import { printJson } from '../output.ts'

export async function cp(context: Context): Promise<void> {
  const [from, to] = context.args.args.map(placeOf)
  if (!from || !to || 'unit' in from === 'unit' in to)
    throw new UsageError(
      'One of both is UNIT:/path, the other a path of this computer, or - for standard input and output',
    )
  if (context.isJson && to.path === '-' && !('unit' in to))
    throw new UsageError('Standard output is for the file itself: it has no JSON')
  const copied =
    'unit' in to
      ? await copyIn(context, from.path, to)
      : 'unit' in from
        ? await copyOut(context, from, to.path)
        : null
  if (context.isJson) await printJson(copied)
}

/** `UNIT:/path`; a file whose name has a colon is meant by ./name:x. */
function placeOf(word: string): UnitPlace | { path: string } {
  const [, unit, path] = /^([^:/.][^:]*):(\/.*)$/.exec(word) ?? []
  return unit === undefined || path === undefined ? { path: word } : { unit, path }
}
