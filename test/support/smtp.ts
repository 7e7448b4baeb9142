// A mail server on a port of its own, which does to a mail what the test says.

import type { AddressInfo, Socket } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer } from 'smtp-server'

/** `drop`: the connection breaks once the whole mail is there, before anybody is told. */
type Treatment = 'accept' | 'refuse' | 'hang' | 'drop'

export type MailServer = {
  url: string
  /** What came in whole, whatever was said of it. */
  received: { mail: Email; from: string; to: string[]; raw: string }[]
  treat: (how: Treatment) => void
  close: () => Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const received: MailServer['received'] = []
  const sockets = new Set<Socket>()
  let treatment: Treatment = 'accept'
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    onRcptTo: (_address, _session, done) => {
      if (treatment === 'refuse') return done(Object.assign(new Error('not here'), { responseCode: 550 }))
      if (treatment !== 'hang') done()
    },
    onData: (stream, session, done) => {
      void (async () => {
        const chunks: Buffer[] = []
        for await (const chunk of stream) chunks.push(chunk)
        const raw = Buffer.concat(chunks).toString()
        const { mailFrom, rcptTo } = session.envelope
        const to = rcptTo.map(({ address }) => address)
        const from = mailFrom === false ? '' : mailFrom.address
        received.push({ mail: await PostalMime.parse(raw), from, to, raw })
        if (treatment === 'accept') done()
        else for (const socket of sockets) socket.destroy()
      })()
    },
  })
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // A client that is cut off is an error to the server, and what the test asked for.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    received,
    treat: (how) => {
      treatment = how
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}
