// Visits to units, over HTTP. No unit has a URL yet, so every host name is unknown and answered so.

import { createServer, type Server } from 'node:http'
import { SECOND } from '../lib/clock.ts'

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Not found</title>
<h1>There is nothing at this address</h1>
<p>The unit that was here is gone, or the link is wrong.</p>
</html>
`

/** Ready to listen; the caller chooses the address and closes it. */
export function createGateway(): Server {
  const server = createServer(
    { requestTimeout: 60 * SECOND, headersTimeout: 10 * SECOND },
    (_request, response) => {
      response
        .writeHead(404, {
          'content-type': 'text/html; charset=utf-8',
          'content-length': Buffer.byteLength(page),
          'content-security-policy': "default-src 'none'",
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
          connection: 'close',
        })
        .end(page)
    },
  )
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}
