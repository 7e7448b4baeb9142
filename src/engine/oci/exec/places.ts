// Directories are made and files moved in a running machine, by the helper inside of it (file-helper.ts).

import type { FileOwner, MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../machine/context.ts'
import {
  IS_DIRECTORY,
  IS_MISSING,
  IS_NO_DIRECTORY,
  readHelper,
  runHelper,
  SCRIPT_HEAD,
  scriptPath,
} from './file-helper.ts'
import { MAKE_PARENTS, ownerArguments } from './file-owner.ts'

const MAKE_TIMEOUT_MS = 20_000
/** Between two disks of the machine, a tree is copied. */
const MOVE_TIMEOUT_MS = 120_000

// `mkdir` itself says whether it was there before, also if another one makes it at that moment.
const MAKE = `${SCRIPT_HEAD}
mode=$2 owner=$3
${MAKE_PARENTS}
if mkdir -m "\${mode:-755}" "$path" 2>/dev/null; then
  [ -z "$owner" ] || chown -h "$owner" "$path"
  echo made
else
  [ -d "$path" ] || ! { [ -e "$path" ] || [ -L "$path" ]; } || exit ${IS_NO_DIRECTORY}
  [ -d "$path" ] || mkdir "$path"
fi`

const MOVE = `${SCRIPT_HEAD}
from=$path
case $2 in
  /*) path=$2 ;;
  *) path=$(printf '%b.' "$2"); path=\${path%.} ;;
esac
owner=$3
[ -e "$from" ] || [ -L "$from" ] || exit ${IS_MISSING}
[ -L "$path" ] || [ ! -d "$path" ] || exit ${IS_DIRECTORY}
${MAKE_PARENTS}
mv -T -f "$from" "$path"`

/** Returns whether it was not there before. */
export async function makeDirectoryInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  owner: FileOwner,
): Promise<boolean> {
  const { stdout } = await readHelper(host, ref, {
    script: MAKE,
    args: [scriptPath(machinePath(path)), ...(await ownerArguments(host, ref, owner))],
    timeoutMs: MAKE_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The directory took too long to make.'),
    maxBytes: 16,
  })
  return stdout.toString('latin1') === 'made\n'
}

export async function moveFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  from: string,
  to: string,
  user?: string,
): Promise<void> {
  const [, owner] = await ownerArguments(host, ref, { user })
  const helped = {
    script: MOVE,
    args: [scriptPath(machinePath(from)), scriptPath(machinePath(to)), owner],
    timeoutMs: MOVE_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'It took too long to move; a part of it may be in both places.'),
    explain: (complaint: string) =>
      complaint.includes('Invalid argument') ? 'a directory cannot be moved into itself' : null,
  }
  await runHelper(host, ref, helped, () => {})
}
