// The WebSocket of a terminal (docs/terminal.md), with this browser's session. A browser reads whatever comes, so the
// service is asked to pause while what came is not drawn yet: a command that prints without end waits, and the page does not.

import { BerthError, type ErrorCode } from '@berth/sdk'
import { berthOf } from '../api/client.ts'

export type TerminalEnd =
  | { kind: 'exit'; exitCode: number; timedOut: boolean }
  | { kind: 'error'; error: unknown }
  /** The connection ended first: the network, or a restart of the server. */
  | { kind: 'lost' }

export type TerminalSocket = {
  write: (data: string | Uint8Array) => void
  resize: (columns: number, rows: number) => void
  /** Leaves the session, whose command goes on for a while. Nothing is told any more. */
  close: () => void
}

type Handlers = {
  onOpen: () => void
  /** Calls back once it is drawn. */
  onOutput: (bytes: Uint8Array, drawn: () => void) => void
  /** Once. */
  onEnd: (end: TerminalEnd) => void
}

/** How much may wait to be drawn before the service pauses, and how little is left when it goes on. */
const WAITING_BYTES = { most: 256 * 1024, again: 64 * 1024 }

export function openTerminalSocket(
  { team, id, columns, rows }: { team: string; id: string; columns: number; rows: number },
  { onOpen, onOutput, onEnd }: Handlers,
): TerminalSocket {
  const path = `/v1/units/${encodeURIComponent(id)}/exec`
  const size = { cols: `${columns}`, rows: `${rows}` }
  const query = new URLSearchParams({ tty: '1', ...size, team, session: sessionOf(id) })
  const url = `${location.origin.replace(/^http/, 'ws')}${path}?${query.toString()}`
  const socket = new WebSocket(url, 'berth.v1')
  socket.binaryType = 'arraybuffer'
  let isOpened = false
  let end: TerminalEnd | null = null
  let isClosed = false
  let waiting = 0
  let isPaused = false
  const say = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const hear = (data: ArrayBuffer) => {
    waiting += data.byteLength
    if (!isPaused && waiting > WAITING_BYTES.most) {
      isPaused = true
      say({ pause: true })
    }
    onOutput(new Uint8Array(data, 1), () => {
      waiting -= data.byteLength
      if (!isPaused || waiting > WAITING_BYTES.again) return
      isPaused = false
      say({ pause: false })
    })
  }
  socket.addEventListener('open', () => {
    isOpened = true
    if (!isClosed) onOpen()
  })
  socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (isClosed) return
    if (typeof data === 'string') end = endOf(data)
    else hear(data)
  })
  socket.addEventListener('close', () => {
    if (isClosed) return
    if (end !== null || isOpened) onEnd(end ?? { kind: 'lost' })
    else
      void whyRefused(team, path).then((refused) => {
        if (!isClosed) onEnd(refused)
      })
  })
  return {
    write: (data) => {
      const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
      const message = new Uint8Array(1 + bytes.length)
      message.set(bytes, 1)
      if (socket.readyState === WebSocket.OPEN) socket.send(message)
    },
    resize: (width, height) => say({ resize: [width, height] }),
    close: () => {
      isClosed = true
      socket.close()
    },
  }
}

/** Of this tab of the browser, also after a reload. */
function sessionOf(id: string): string {
  const key = `berth-terminal-${id}`
  const name = sessionStorage.getItem(key) ?? crypto.getRandomValues(new Uint32Array(2)).join('-')
  sessionStorage.setItem(key, name)
  return name
}

type Told = {
  exit?: { exitCode: number; timedOut: boolean }
  error?: { code: ErrorCode; message: string; details?: unknown; requestId: string }
}

function endOf(text: string): TerminalEnd {
  const { exit, error } = JSON.parse(text) as Told
  if (exit) return { kind: 'exit', ...exit }
  if (!error) return { kind: 'lost' }
  const { code, message, details, requestId } = error
  const status = code === 'payment_required' ? 402 : null
  return { kind: 'error', error: new BerthError(code, message, { status, details, requestId }) }
}

/** Browsers hide why a WebSocket was refused. The same call without one is refused in words. */
async function whyRefused(team: string, path: string): Promise<TerminalEnd> {
  try {
    await berthOf(team).request('GET', path)
  } catch (error) {
    // This one says that it takes a WebSocket: the other had no fault.
    const isAboutUpgrade = error instanceof BerthError && error.code === 'validation'
    if (!isAboutUpgrade) return { kind: 'error', error }
  }
  return { kind: 'lost' }
}
