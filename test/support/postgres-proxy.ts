// A way to Postgres that breaks where a test wants it to: before a statement reaches the server, or once the server has
// executed it and its reply is all that is missing. It reads of the protocol what that takes: the length of each
// message, the text of statements, and when the server is ready for the next.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Side = 'before' | 'after'

export type PostgresProxy = {
  url: string
  /** One connection breaks, at the statement after so many others of whichever connections; replies to those that write. */
  breakAt(statement: number, side: Side): void
  /** The statement that it broke at; null while it has not, and it will not from here on. */
  brokeAt(): string | null
  /** All connections break, and none is taken. */
  shut(): void
  open(): Promise<void>
  close(): Promise<void>
}

const NAME = '.s.PGSQL.5432'

/** `databaseUrl`: of a server on a socket. */
export async function openPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-proxy-'))
  const [address = '', query] = databaseUrl.split('?')
  const far = join(new URLSearchParams(query).get('host') ?? '', NAME)
  const sockets = new Set<Socket>()
  let server = createServer()
  let wanted: { statementsLeft: number; side: Side } | null = null
  let struck: string | null = null

  /** Whether this is the statement, and then on which side of it to break. */
  function strike(statement: string): Side | null {
    if (!wanted) return null
    // One that reads and gets no reply is as one that never came.
    if (wanted.side === 'after' && /^\s*select\b/i.test(statement)) return null
    if (wanted.statementsLeft-- > 0) return null
    const { side } = wanted
    wanted = null
    struck = statement
    return side
  }

  function carry(near: Socket): void {
    const target = connect(far)
    const breakOff = () => {
      near.destroy()
      target.destroy()
    }
    for (const socket of [near, target]) {
      sockets.add(socket)
      socket.on('error', breakOff).on('close', () => {
        sockets.delete(socket)
        breakOff()
      })
    }
    let isMuted = false
    const toServer = createReader({ beginsWithStartup: true })
    const toClient = createReader({ beginsWithStartup: false })
    near.on('data', (chunk: Buffer) => {
      for (const message of toServer(chunk)) {
        const statement = statementIn(message)
        const side = statement === null ? null : strike(statement)
        if (side === 'before') return breakOff()
        if (side === 'after') isMuted = true
        target.write(message)
      }
    })
    target.on('data', (chunk: Buffer) => {
      if (!isMuted) near.write(chunk)
      for (const message of toClient(chunk)) if (isMuted && typeOf(message) === 'Z') breakOff()
    })
  }

  const open = async () => {
    server = createServer(carry).listen(join(directory, NAME))
    await once(server, 'listening')
  }
  const shut = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  await open()
  return {
    url: `${address}?host=${encodeURIComponent(directory)}`,
    breakAt: (statement, side) => {
      wanted = { statementsLeft: statement, side }
      struck = null
    },
    brokeAt: () => {
      wanted = null
      return struck
    },
    shut,
    open,
    close: async () => {
      shut()
      await rm(directory, { recursive: true })
    },
  }
}

/** Cuts a stream of bytes into messages. The first of a client, which tells who it is, has no type. */
function createReader({ beginsWithStartup }: { beginsWithStartup: boolean }): (chunk: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0)
  let typeLength = beginsWithStartup ? 0 : 1
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    const messages: Buffer[] = []
    while (rest.length >= typeLength + 4) {
      const length = typeLength + rest.readInt32BE(typeLength)
      if (rest.length < length) break
      messages.push(rest.subarray(0, length))
      rest = rest.subarray(length)
      typeLength = 1
    }
    return messages
  }
}

/** The text of a simple query, or of one that is about to be bound and executed. */
function statementIn(message: Buffer): string | null {
  const strings = message.subarray(5).toString().split('\0')
  if (typeOf(message) === 'Q') return strings[0] ?? ''
  if (typeOf(message) === 'P') return strings[1] ?? ''
  return null
}

function typeOf(message: Buffer): string {
  return String.fromCharCode(message[0] ?? 0)
}
