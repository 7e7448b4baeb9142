// For whom files and directories of a running machine are made, and the directories above them.

import type { FileOwner, MachineRef } from '../../engine.ts'
import type { EngineContext } from '../machine/context.ts'
import { userOfMachine } from './users.ts'

// Those that are missing above `$path` belong to `$owner` too, where one is named.
export const MAKE_PARENTS = `missing= above=\${path%/*}
while [ -n "$above" ] && [ ! -d "$above/" ]; do
  missing=$above above=\${above%/*}
done
if [ -n "$missing" ]; then
  mkdir -p "\${path%/*}/"
  [ -z "$owner" ] || chown -R -h "$owner" "$missing"
fi`

/** The mode and the owner as a script takes them: each may be empty. Throws `unknown_user`. */
export async function ownerArguments(
  host: EngineContext,
  ref: MachineRef,
  { mode, user }: FileOwner,
): Promise<[mode: string, owner: string]> {
  const found = user === undefined ? null : await userOfMachine(host, ref, user)
  return [mode?.toString(8) ?? '', found ? `${found.uid}:${found.gid}` : '']
}
