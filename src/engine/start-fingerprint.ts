// Hash of the start spec (command, env, boot files); a checkpoint may only be restored by a run with the same hash.
// The host name and the search domain are not part of it, because a copy goes on under another name.

import { createHash } from 'node:crypto'
import type { RunSpec } from './engine.ts'

export function startFingerprintOf({ entrypoint, cmd, env, files, egress }: RunSpec): string {
  const variables = Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const contents = files.map(({ path, content }) => [path, content.toString('base64')])
  // A machine with secrets has mounts and variables that others do not have (oci/storage/trust.ts).
  const trusting = egress !== null && egress.secrets.length > 0 ? ['secrets'] : []
  return createHash('sha256')
    .update(JSON.stringify([entrypoint, cmd, variables, contents, ...trusting]))
    .digest('hex')
}
