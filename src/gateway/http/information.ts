// Passes informational responses of a unit on to its visitor: 103 Early Hints, 102 Processing, and those of later standards
// (RFC 9110, 15.2). 100 Continue is in proxy-request.ts, because it answers an expectation; 101 ends HTTP.

import { type InformationEvent, ServerResponse } from 'node:http'
import { Http2ServerResponse, type OutgoingHttpHeaders } from 'node:http2'
import type { Route } from '../route.ts'
import type { Exchange } from './exchange.ts'
import { headersForVisitor } from './response-head.ts'

/** Of all to one request together, like one head: a visitor that reads nothing holds no more of them. */
const MAX_BYTES = 64 * 1024
const MAX_COUNT = 64

export type Informed = Pick<InformationEvent, 'statusCode' | 'rawHeaders'>

/** Never throws: what cannot be passed on is dropped, and the final response follows. */
export function createInformationRelay(
  { request, response, head }: Exchange,
  { secretHash }: Pick<Route, 'secretHash'>,
): (informed: Informed) => void {
  // A client of HTTP/1.0 would take it for the final response.
  const isUnderstood = request.httpVersionMajor === 2 || request.httpVersionMinor === 1
  let bytes = 0
  let count = 0
  return ({ statusCode, rawHeaders }) => {
    count += 1
    for (const text of rawHeaders) bytes += text.length + 2
    if (!isUnderstood || response.headersSent || count > MAX_COUNT || bytes > MAX_BYTES) return
    const { headers } = headersForVisitor(withoutLength(rawHeaders), {
      host: head.host,
      isPrivate: secretHash !== null,
    })
    try {
      if (response instanceof ServerResponse) response.writeInformation(statusCode, headers)
      else if (response instanceof Http2ServerResponse)
        response.stream.additionalHeaders({ ...byName(headers), ':status': statusCode })
    } catch {
      // The visitor has left, or its version of HTTP has no such header.
    }
  }
}

/** It has no body. A length would be read as that of the final response, by readers that are not careful. */
function withoutLength(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_text, at) => rawHeaders[at - (at % 2)]?.toLowerCase() !== 'content-length')
}

function byName(headers: readonly string[]): OutgoingHttpHeaders {
  const values = new Map<string, string[]>()
  for (let at = 0; at < headers.length; at += 2) {
    const name = (headers[at] ?? '').toLowerCase()
    values.set(name, [...(values.get(name) ?? []), headers[at + 1] ?? ''])
  }
  return Object.fromEntries(values)
}
