// Connects a screen with the command that it shows, and opens the command again after its end.

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { openTerminalSocket, type TerminalEnd, type TerminalSocket } from './terminal-socket.ts'
import { openScreen, type Screen } from './xterm-screen.ts'

export type TerminalStatus =
  /** It is not asked for yet. */
  { is: 'idle' } | { is: 'connecting' } | { is: 'open'; since: number } | { is: 'over'; end: TerminalEnd }

type Size = { columns: number; rows: number }

export function useTerminal(
  { team, id }: { team: string; id: string },
  place: RefObject<HTMLElement | null>,
) {
  const [status, setStatus] = useState<TerminalStatus>({ is: 'idle' })
  const [size, setSize] = useState<Size>({ columns: 80, rows: 24 })
  const screen = useRef<Screen | null>(null)
  const socket = useRef<TerminalSocket | null>(null)

  useEffect(() => {
    const box = place.current
    if (box === null) return
    const opened = openScreen(box)
    const { xterm } = opened
    screen.current = opened
    xterm.onData((text) => socket.current?.write(text))
    xterm.onBinary((text) => socket.current?.write(Uint8Array.from(text, (each) => each.charCodeAt(0))))
    xterm.onResize(({ cols, rows }) => {
      socket.current?.resize(cols, rows)
      setSize({ columns: cols, rows })
    })
    opened.fit()
    const resized = new ResizeObserver(opened.fit)
    resized.observe(box)
    return () => {
      resized.disconnect()
      socket.current?.close()
      socket.current = null
      screen.current = null
      opened.dispose()
    }
  }, [place])

  const connect = useCallback(() => {
    const xterm = screen.current?.xterm
    if (!xterm) return
    socket.current?.close()
    // The command before this one may have left another screen, or none of its colours.
    xterm.reset()
    xterm.focus()
    setStatus({ is: 'connecting' })
    const made = openTerminalSocket(
      { team, id, columns: xterm.cols, rows: xterm.rows },
      {
        onOpen: () => {
          setStatus({ is: 'open', since: Date.now() })
          // It may have been made larger meanwhile.
          made.resize(xterm.cols, xterm.rows)
        },
        onOutput: (bytes, drawn) => xterm.write(bytes, drawn),
        onEnd: (end) => {
          socket.current = null
          setStatus({ is: 'over', end })
        },
      },
    )
    socket.current = made
  }, [team, id])

  return { status, size, connect, xterm: () => screen.current?.xterm ?? null }
}
