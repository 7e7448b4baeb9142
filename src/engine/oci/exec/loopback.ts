// Ports of a machine at which something listens for the machine itself alone, such as a development server at `localhost`.
// A program of the helper in the machine listens for others at another port, and passes on what comes there. It ends with
// the run.

import { randomInt } from 'node:crypto'
import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { getRunning, type EngineContext } from '../machine/context.ts'
import { HELPER } from '../runtime/bundle.ts'
import { IS_MISSING, readHelper } from './file-helper.ts'

/** Where programs rarely listen, and below the ports that the kernel gives to connections. */
const PORTS = { first: 20_000, end: 32_000 }
/** A port that is taken is not asked for again. */
const TRIES = 5
const TIMEOUT_MS = 10_000
const SAID_BYTES = 16

// A connection shows whether something listens: gVisor lists no sockets of IPv6. What listens for others is looked at after a
// moment, because it ends if its port is taken.
const SCRIPT = `
listens() { nc -w 1 "$1" "$2" -e ${HELPER} true </dev/null >/dev/null 2>&1; }
port=$1 known=$2 at=127.0.0.1
shift 2
listens $at "$port" || { at=::1; listens $at "$port"; } || exit ${IS_MISSING}
if [ "$known" != 0 ] && listens 127.0.0.1 "$known"; then echo "$known"; exit 0; fi
for own; do
  setsid ${HELPER} nc -ll -p "$own" -e ${HELPER} nc "$at" "$port" </dev/null >/dev/null 2>&1 &
  sleep 0.1
  if kill -0 $! 2>/dev/null; then echo "$own"; exit 0; fi
done
exit 1`

/** Returns the port at the machine's address that leads to the port of its loopback; null if nothing listens there. */
export async function openLoopback(
  host: EngineContext,
  ref: MachineRef,
  port: number,
): Promise<number | null> {
  const { loopbacks, record } = getRunning(host, ref)
  const key = `${record.generation} ${port}`
  const own = Array.from({ length: TRIES }, () => String(randomInt(PORTS.first, PORTS.end)))
  try {
    const { stdout } = await readHelper(host, ref, {
      script: SCRIPT,
      args: [String(port), String(loopbacks.get(key) ?? 0), ...own],
      timeoutMs: TIMEOUT_MS,
      late: () => new EngineError('timeout', 'The machine took too long to look at the port.'),
      maxBytes: SAID_BYTES,
    })
    const opened = Number(stdout.toString('latin1').trim())
    if (!Number.isInteger(opened) || opened < PORTS.first || opened >= PORTS.end)
      throw new EngineError('file_refused', 'The machine opened no port.')
    loopbacks.set(key, opened)
    return opened
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'file_not_found') throw error
    return null
  }
}
