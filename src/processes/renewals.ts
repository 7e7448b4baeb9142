// How the server asks the supervisor for the certificates of a host (decisions/joining.md). It is rare, so each question
// has a connection of its own.

import { connect } from 'node:net'
import type { RenewalOutcome } from '../engine/renewal.ts'
import { openJsonLinesClient } from '../lib/ipc/json-lines-rpc.ts'
import { RENEWAL_DEADLINE_MS, RENEWAL_MAX_BYTES, renewalReply } from '../lib/ipc/renewal-protocol.ts'

/** Rejects if the supervisor does not answer. */
export function signRenewalsOver(
  socketPath: string,
): (asked: { host: string; request: string }) => Promise<RenewalOutcome> {
  return async (asked) => {
    const socket = connect(socketPath)
    const calls = openJsonLinesClient(socket, {
      mostBytes: RENEWAL_MAX_BYTES,
      hear: (line) => renewalReply.parse(JSON.parse(line)),
      late: () => new Error('the supervisor does not answer'),
      over: (cause) => cause ?? new Error('the supervisor ended the connection'),
    })
    try {
      return (await calls.call(asked, RENEWAL_DEADLINE_MS)).outcome
    } finally {
      socket.destroy()
    }
  }
}
