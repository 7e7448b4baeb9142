// What the unit's own process prints, as it prints it. Reading wakes nothing.

import { useVirtualizer } from '@tanstack/react-virtual'
import { type UIEvent, useEffect, useMemo, useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { download } from '../ui/download.ts'
import { inputClass, Select } from '../ui/field.tsx'
import { timeOfDay } from '../ui/format.tsx'
import { Failure } from '../ui/page-parts.tsx'
import { Creating } from './creating.tsx'
import { fileOf, plainText, selectLines, type Shown } from './log-text.ts'
import { type NumberedLine, RING_LINES, useLog } from './use-log.ts'
import type { StreamStatus } from './use-stream.ts'
import { useUnit } from './unit-context.ts'
import styles from './logs.module.css'

const LINE_PX = 20
/** This near the end counts as the end. */
const END_PX = 4

export function LogsTab() {
  const unit = useUnit()
  const team = useTeam()
  const [isPaused, setPaused] = useState(false)
  const [text, setText] = useState('')
  const [stream, setStream] = useState<Shown>('all')
  const search = useRef<HTMLInputElement>(null)
  const run = unit.startedAt ?? ''
  const { lines, status, held, again } = useLog({ team: team.id, unit, isPaused })
  const shown = useMemo(() => selectLines(lines, { text, stream }), [lines, text, stream])
  useKeys('Logs', [
    { keys: '/', label: 'Search loaded lines', run: () => search.current?.focus() },
    { keys: 'p', label: 'Pause', run: () => setPaused(!isPaused) },
  ])
  return (
    <div className={styles.frame}>
      <div className={styles.bar}>
        <input
          ref={search}
          type="search"
          className={`${inputClass} ${styles.search}`}
          aria-label="Search loaded lines"
          placeholder="Search loaded lines"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Select
          aria-label="Stream"
          value={stream}
          options={[
            { value: 'all', label: 'Both streams' },
            { value: 'stdout', label: 'stdout' },
            { value: 'stderr', label: 'stderr' },
          ]}
          onChange={setStream}
        />
        <Button hint="p" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
        <Button
          why={shown.length === 0 ? 'No lines.' : null}
          onClick={() => download(`${unit.name}.log`, 'text/plain', fileOf(shown))}
        >
          Download
        </Button>
        <span role="status" className={styles.quiet}>
          {isPaused && status.is !== 'lost'
            ? `Paused; ${held} more ${held === 1 ? 'line' : 'lines'}`
            : sayStatus(status)}
        </span>
        {status.is === 'failed' && shown.length > 0 && <Button onClick={again}>Try again</Button>}
      </div>
      {shown.length > 0 ? (
        <Lines lines={shown} run={run} />
      ) : status.is === 'failed' ? (
        <div className={styles.none}>
          <Failure {...explain(status.error)} onRetry={again} />
        </div>
      ) : unit.progress ? (
        <div className={styles.none}>
          <Creating progress={unit.progress} />
        </div>
      ) : (
        <p className={styles.none}>
          {lines.length > 0 ? 'No line matches.' : status.is === 'reading' ? 'Reading…' : 'No output yet.'}
        </p>
      )}
      <p className={styles.quiet}>
        {shown.length === lines.length ? `${lines.length} lines` : `${shown.length} of ${lines.length} lines`}
        {lines.length >= RING_LINES && '; older ones are not kept on this page'}
      </p>
    </div>
  )
}

function sayStatus(status: StreamStatus): string {
  if (status.is === 'lost')
    return `Not live since ${timeOfDay(new Date(status.since).toISOString())}; trying again.`
  return sentences[status.is]
}

const sentences = {
  reading: 'Reading…',
  following: 'Live',
  ended: 'It does not run: nothing more comes.',
  failed: 'Not live.',
} as const satisfies Record<Exclude<StreamStatus['is'], 'lost'>, string>

/** Only the lines in sight are rendered. The view follows the end until the reader scrolls away from it. */
function Lines({ lines, run }: { lines: readonly NumberedLine[]; run: string }) {
  const scroller = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const [seen, setSeen] = useState(0)
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  })
  const last = lines.at(-1)?.number ?? 0
  useEffect(() => {
    const box = scroller.current
    if (box && isAtEnd && last >= 0) box.scrollTop = box.scrollHeight
  }, [isAtEnd, last])
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>) => {
    const isEnd = box.scrollHeight - box.scrollTop - box.clientHeight <= END_PX
    if (isEnd !== isAtEnd) setAtEnd(isEnd)
    if (!isEnd && isAtEnd) setSeen(last)
  }
  // The first line of the run that goes on now.
  const first = run === '' ? -1 : lines.findIndex(({ at }) => at >= run)
  return (
    <div className={styles.box}>
      <div
        ref={scroller}
        className={styles.lines}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Log of the unit"
        onScroll={onScroll}
      >
        <div className={styles.all} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const line = lines[item.index]
            if (!line) return null
            return (
              <div
                key={line.number}
                className={`${styles.line} ${line.stream === 'stderr' ? styles.stderr : ''} ${item.index === first && first > 0 ? styles.first : ''}`}
                style={{ transform: `translateY(${item.start}px)` }}
                title={item.index === first ? 'The current run begins here.' : undefined}
              >
                <time dateTime={line.at} className={styles.at}>
                  {timeOfDay(line.at)}
                </time>
                <span className={styles.stream}>{line.stream === 'stderr' ? 'err' : 'out'}</span>
                <span>{plainText(line.text)}</span>
              </div>
            )
          })}
        </div>
      </div>
      {!isAtEnd && (
        <div className={styles.end}>
          <Button onClick={() => setAtEnd(true)}>
            {last > seen ? `${last - seen} new ${last - seen === 1 ? 'line' : 'lines'} ↓` : 'To the end ↓'}
          </Button>
        </div>
      )}
    </div>
  )
}
