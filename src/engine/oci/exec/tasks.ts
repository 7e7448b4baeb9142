// What runs in a machine, as the machine itself sees it: read from its /proc by the helper in it (file-helper.ts).

import { limits } from '../../../contract/limits.ts'
import type { MachineRef } from '../../engine.ts'
import type { MachineTask, ProcessSignal } from '../../process.ts'
import { EngineError } from '../../errors.ts'
import type { EngineContext } from '../machine/context.ts'
import { HELPER_DIR } from '../storage/mount-points.ts'
import { readHelper, runHelper } from './file-helper.ts'
import { accountsIn, namesIn, SAID_BYTES, SAY_ACCOUNTS } from './users.ts'

const TIMEOUT_MS = 20_000
/** Of one command line. */
const LINE_BYTES = 4096
const TABLE_BYTES = 4 * 1024 * 1024
const IS_GONE = 48

// What the engine runs in the machine has its program beside the helper. One that ends meanwhile is left out.
const TABLE = `set -eu
${SAY_ACCOUNTS}
cd /proc
for each in [0-9]*; do
  case $(readlink "$each/exe" 2>/dev/null || :) in ${HELPER_DIR}/*) continue ;; esac
  uid=$(stat -c %u "$each" 2>/dev/null) && said=$(cat "$each/stat" 2>/dev/null) || continue
  line=$(head -c ${LINE_BYTES} "$each/cmdline" 2>/dev/null | base64 -w 0) || continue
  printf '%s %s %s\\n' "$uid" "\${line:--}" "$(printf %s "\${said##*) }" | tr '\\n' ' ' | cut -d ' ' -f 1-3 | sed "s/^/$each /")"
done | head -c "$1"`

const SIGNAL = `set -eu
[ -d "/proc/$1" ] || exit ${IS_GONE}
kill -s "$2" "$1" || { [ -d "/proc/$1" ] || exit ${IS_GONE}; exit 1; }`

const TASK = /^(\d{1,10}) ([A-Za-z0-9+/=]+|-) (\d{1,10}) ([A-Za-z]) (\d{1,10}) (-?\d{1,10})$/

/** By pid, with those that the engine itself runs left out. */
export async function listTasks(
  host: EngineContext,
  ref: MachineRef,
): Promise<{ tasks: MachineTask[]; truncated: boolean }> {
  const { stdout } = await readHelper(host, ref, {
    script: TABLE,
    args: [String(TABLE_BYTES)],
    timeoutMs: TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The machine took too long to list its processes.'),
    maxBytes: SAID_BYTES + TABLE_BYTES,
  })
  const { accounts, rest } = accountsIn(stdout)
  const { owner } = namesIn(accounts)
  const found = rest
    .toString('latin1')
    .split('\n')
    .flatMap((line): MachineTask[] => {
      const [, uid = '', command = '', pid = '', state = '', parentPid = '', groupId = ''] =
        TASK.exec(line) ?? []
      const argv = argvIn(command)
      // Some of them do not let even the machine's root read which program they are.
      if (pid === '' || argv[0]?.startsWith(`${HELPER_DIR}/`)) return []
      return [
        {
          pid: Number(pid),
          parentPid: Number(parentPid),
          groupId: Number(groupId),
          uid: Number(uid),
          owner: owner(Number(uid)),
          state,
          argv,
        },
      ]
    })
  const tasks = found.toSorted((one, other) => one.pid - other.pid)
  const truncated = rest.length >= TABLE_BYTES || tasks.length > limits.processTable
  return { tasks: tasks.slice(0, limits.processTable), truncated }
}

export async function signalTask(
  host: EngineContext,
  ref: MachineRef,
  pid: number,
  signal: ProcessSignal,
): Promise<void> {
  const helped = {
    script: SIGNAL,
    args: [String(pid), signal],
    timeoutMs: TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The machine took too long to send the signal.'),
    outcomes: { [IS_GONE]: () => new EngineError('unknown_process', 'No such process runs in the machine.') },
  }
  await runHelper(host, ref, helped, () => {})
}

function argvIn(base64: string): string[] {
  if (base64 === '-') return []
  const line = Buffer.from(base64, 'base64').toString('utf8')
  return (line.endsWith('\0') ? line.slice(0, -1) : line).split('\0')
}
