// A terminal in the unit. What the unit prints is drawn by xterm.js and reaches the page as nothing else: its titles,
// its links and its wish for the clipboard are ignored.

import type { Contract } from '@berth/sdk'
import { useCallback, useEffect, useRef, useState } from 'react'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { tell } from '../ui/toast.tsx'
import { useUnitAction } from '../units/actions.ts'
import { Creating } from './creating.tsx'
import type { TerminalEnd } from './terminal-socket.ts'
import { type TerminalStatus, useTerminal } from './use-terminal.ts'
import { useUnit } from './unit-context.ts'
import styles from './terminal.module.css'

/** A paste of more lines asks first: each of them may run at once. */
const LINES_PASTED = 5

export function TerminalTab() {
  const unit = useUnit()
  const team = useTeam()
  const place = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLDivElement>(null)
  const [pasted, setPasted] = useState<string | null>(null)
  // A person has asked for the unit to start here: the terminal follows.
  const [isStarting, setStarting] = useState(false)
  const { status, size, connect, xterm } = useTerminal({ team: team.id, id: unit.id }, place)
  const { mutate, isPending } = useUnitAction(team.id)
  const why = whyNot(unit, 'exec')
  const isAsleep = unit.state === 'sleeping'
  // Opening a terminal wakes its unit, which costs: of one that sleeps a person asks for it.
  const isWanted = (status.is === 'idle' || isStarting) && why === null && !isAsleep
  useEffect(() => {
    if (!isWanted) return
    setStarting(false)
    connect()
  }, [isWanted, connect])
  const canStart = unit.state === 'stopped'
  const start = () => {
    setStarting(true)
    mutate({ unit, action: 'start' }, { onError: () => setStarting(false) })
  }
  const opener = canStart ? (
    <Button kind="main" busy={isPending} onClick={start}>
      Start
    </Button>
  ) : (
    <Button kind="main" why={why} onClick={connect}>
      {status.is === 'over' ? 'Connect again' : isAsleep ? 'Wake and connect' : 'Connect'}
    </Button>
  )
  // What the last command printed stays in sight.
  const isCovered = status.is === 'idle' && !isWanted

  const copy = useCallback(async () => {
    const text = xterm()?.getSelection() ?? ''
    if (text === '') return tell('Nothing is selected in the terminal')
    const clipboard = navigator.clipboard as Clipboard | undefined
    if (!clipboard) return tell('This page has no clipboard over plain HTTP: use Ctrl+Insert')
    await clipboard.writeText(text)
    tell('Copied')
  }, [xterm])

  useEffect(() => {
    xterm()?.attachCustomKeyEventHandler((event) => {
      if (!event.ctrlKey || event.type !== 'keydown') return true
      // Tab is the shell's, so another key leads out of the terminal.
      if (event.key === 'F6') button.current?.querySelector('button')?.focus()
      else if (event.shiftKey && event.code === 'KeyC') void copy()
      // The browser's own way to paste, and the palette's key.
      else return !(event.shiftKey && ['KeyV', 'KeyK'].includes(event.code))
      event.preventDefault()
      return false
    })
  }, [xterm, copy])

  return (
    <div className={styles.frame}>
      <div ref={button} className={styles.bar}>
        <span role="status">{sentenceOf(status, isAsleep, why)}</span>
        <span className={styles.quiet}>
          {size.columns} × {size.rows}
        </span>
        <span className={styles.buttons}>
          <Button onClick={() => void copy()}>Copy</Button>
          {status.is === 'over' && opener}
        </span>
      </div>
      {status.is === 'over' && <Why end={status.end} />}
      <div className={styles.box}>
        <div
          ref={place}
          data-own-keys
          role="region"
          aria-label="Terminal"
          className={styles.screen}
          inert={isCovered}
          onPasteCapture={(event) => {
            const text = event.clipboardData.getData('text/plain')
            if (text.split(/\r\n|\r|\n/).length <= LINES_PASTED || xterm()?.modes.bracketedPasteMode) return
            event.preventDefault()
            event.stopPropagation()
            setPasted(text)
          }}
        />
        {isCovered && (
          <div className={styles.cover}>
            {unit.progress ? (
              <Creating progress={unit.progress} />
            ) : (
              <>
                <p>{coverOf(unit)}</p>
                {(canStart || isAsleep) && opener}
              </>
            )}
          </div>
        )}
      </div>
      <p className={styles.quiet}>Ctrl F6 leaves the terminal, Ctrl Shift C copies, Ctrl Shift V pastes.</p>
      <Confirm
        title="Paste all of it?"
        action="Paste"
        isOpen={pasted !== null}
        onClose={() => setPasted(null)}
        onConfirm={async () => await Promise.resolve(xterm()?.paste(pasted ?? ''))}
      >
        <p>It has {pasted?.split('\n').length} lines, and each may run as a command.</p>
      </Confirm>
    </div>
  )
}

function sentenceOf(status: TerminalStatus, isAsleep: boolean, why: string | null): string {
  switch (status.is) {
    case 'idle':
      return isAsleep || why !== null ? 'Not connected.' : ''
    case 'connecting':
      return 'Connecting…'
    case 'open':
      return isAsleep ? 'Connected. The next key wakes the unit.' : 'Connected.'
    case 'over':
      return endOf(status.end)
  }
}

function endOf(end: TerminalEnd): string {
  if (end.kind === 'lost') return 'The connection was lost. What runs goes on for ten minutes.'
  if (end.kind === 'error') return explain(end.error).title
  return end.timedOut ? 'Closed: it was open for 12 hours.' : `Closed with exit code ${end.exitCode}.`
}

/** In place of the screen while nothing has run on it. */
function coverOf({ state }: Contract.Unit): string {
  if (state === 'stopped') return 'This unit is stopped. Start it to open a terminal.'
  if (state === 'sleeping') return 'This unit is sleeping. A terminal wakes it.'
  if (state === 'error') return 'This unit could not be created.'
  return 'The terminal opens as soon as the unit runs.'
}

/** What to do about it. */
function Why({ end }: { end: TerminalEnd }) {
  const team = useTeam()
  if (end.kind !== 'error') return null
  const { text, link, requestId } = explain(end.error)
  return (
    <p role="alert" className={styles.why}>
      {text}{' '}
      {link && (
        <Link to={`/t/$team${link.to}`} params={{ team: team.slug }}>
          {link.text}
        </Link>
      )}{' '}
      {requestId && (
        <>
          Request <code>{requestId}</code>
        </>
      )}
    </p>
  )
}
