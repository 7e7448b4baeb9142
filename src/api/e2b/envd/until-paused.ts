// Ends a stream of a sandbox that is paused meanwhile: its processes say nothing until it is resumed, so that a client would
// wait for ever. They go on with the sandbox, and clients attach to them again.

import { Code, ConnectError } from '@connectrpc/connect'
import { getUnit } from '../../../domain/units/get.ts'
import { logError, toAppError } from '../../http/errors.ts'
import type { RpcCall } from './rpc.ts'

/** Changes of a team within this time are looked at together. */
const GATHER_MS = 200

/** Yields what `answers` does. Its signal aborts with the client's error as well as with that of a pause. */
export async function* untilPaused<T>(
  call: RpcCall,
  answers: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const { app, sender, unitId, requestId } = call
  const paused = new AbortController()
  const over = new AbortController()
  let isLooking = false
  const look = async () => {
    await app.clock.sleep(GATHER_MS, over.signal)
    isLooking = false
    const { state } = await getUnit(app, sender.caller, unitId)
    if (state !== 'sleeping' && state !== 'stopped') return
    paused.abort(
      new ConnectError(
        'The sandbox is paused: connect to it to resume it, and to the process.',
        Code.Unavailable,
      ),
    )
  }
  const onChanged = (teamId: string) => {
    if (teamId !== sender.caller.teamId || isLooking) return
    isLooking = true
    look().catch((error: unknown) => {
      isLooking = false
      const isFault = toAppError(error).status >= 500
      if (isFault && !over.signal.aborted) logError(app.log, error, requestId)
    })
  }
  // One listener for each open stream.
  app.teamEvents.setMaxListeners(0).on('changed', onChanged)
  try {
    yield* answers(AbortSignal.any([call.signal, paused.signal]))
  } finally {
    over.abort()
    app.teamEvents.off('changed', onChanged)
  }
}
