// Code in the unit's contexts, one piece below the other. Variables stay in the unit; what is shown here goes
// with the page.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Segments } from '../ui/segments.tsx'
import { CodeValue } from './code-value.tsx'
import { useUnit } from './unit-context.ts'
import styles from './code.module.css'

const languages = ['python', 'javascript', 'typescript', 'bash', 'r'] as const
type Language = (typeof languages)[number]

type Outcome =
  | { is: 'runs' }
  | { is: 'answered'; result: Contract.CodeResult }
  | { is: 'failed'; why: string }
type Cell = { number: number; language: Language; code: string; outcome: Outcome }

const LONGEST_MS = 10 * 60_000
const EXAMPLE = 'import pandas as pd\npd.DataFrame({"berth": [1, 2, 3]}).plot()'

export function CodeTab() {
  const unit = useUnit()
  const why = whyNot(unit, 'exec')
  const { cells, run, stop, isRunning } = useCells(unit)
  const [language, setLanguage] = useState<Language>('python')
  const [code, setCode] = useState('')
  const editor = useRef<HTMLTextAreaElement>(null)
  const submit = () => {
    if (code.trim() === '' || why !== null || isRunning) return
    run(language, code)
    setCode('')
    editor.current?.focus()
  }
  return (
    <div className={styles.notebook}>
      {cells.length === 0 && (
        <p className={styles.quiet}>
          Variables stay from one piece of code to the next, and plots and tables are shown. Try{' '}
          <button type="button" className={styles.link} onClick={() => setCode(EXAMPLE)}>
            a plot
          </button>
          .
        </p>
      )}
      <ol className={styles.cells} aria-label="History">
        {cells.map((cell) => (
          <CellShown key={cell.number} cell={cell} />
        ))}
      </ol>
      <form
        className={styles.editor}
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        <textarea
          ref={editor}
          aria-label="Code"
          rows={Math.min(Math.max(code.split('\n').length, 3), 20)}
          value={code}
          placeholder="6 * 7"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          onChange={(event) => setCode(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.shiftKey || event.ctrlKey || event.metaKey)) return
            event.preventDefault()
            submit()
          }}
        />
        <div className={styles.bar}>
          <Segments label="Language" value={language} options={languages} onChange={setLanguage} />
          <span className={styles.hint}>Shift+Enter runs it</span>
          <Restart unit={unit} language={language} why={why} />
          {isRunning ? (
            <Button onClick={stop}>Interrupt</Button>
          ) : (
            <Button kind="main" type="submit" why={why}>
              Run
            </Button>
          )}
        </div>
      </form>
    </div>
  )
}

/** Runs one piece of code at a time. */
function useCells({ id }: Contract.Unit) {
  const team = useTeam()
  const [cells, setCells] = useState<readonly Cell[]>([])
  const under = useRef<AbortController | null>(null)
  // Leaving the page ends the call, which interrupts the code.
  useEffect(() => () => under.current?.abort(), [])
  const settle = (number: number, outcome: Outcome) =>
    setCells((all) => all.map((cell) => (cell.number === number ? { ...cell, outcome } : cell)))
  const run = (language: Language, code: string) => {
    const number = cells.length + 1
    const over = new AbortController()
    under.current = over
    setCells([...cells, { number, language, code, outcome: { is: 'runs' } }])
    berthOf(team.id)
      .request<Contract.CodeResult>('POST', `/v1/units/${encodeURIComponent(id)}/code`, {
        body: { code, language, timeoutMs: LONGEST_MS },
        extraMs: LONGEST_MS,
        signal: over.signal,
      })
      .then(
        (result) => settle(number, { is: 'answered', result }),
        (error: unknown) => settle(number, { is: 'failed', why: whyFailed(error, over.signal) }),
      )
      .finally(() => {
        if (under.current === over) under.current = null
      })
  }
  const isRunning = cells.at(-1)?.outcome.is === 'runs'
  return { cells, run, stop: () => under.current?.abort(), isRunning }
}

function whyFailed(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'It was interrupted. Its variables stay.'
  const { title, text } = explain(error)
  return `${title}: ${text}`
}

function CellShown({ cell }: { cell: Cell }) {
  const { number, language, code, outcome } = cell
  const shown = useRef<HTMLLIElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what came last is in sight.
  useEffect(() => {
    shown.current?.scrollIntoView({ block: 'nearest' })
  }, [outcome])
  return (
    <li ref={shown} className={styles.cell}>
      <p className={styles.name}>
        {number} · {language}
      </p>
      <pre className={styles.code} tabIndex={0} role="region" aria-label={`Code ${number}`}>
        {code}
      </pre>
      <div role="status" className={styles.outcome}>
        {outcome.is === 'runs' && <p className={styles.quiet}>Running…</p>}
        {outcome.is === 'failed' && <p className={styles.error}>{outcome.why}</p>}
        {outcome.is === 'answered' && <Result result={outcome.result} />}
      </div>
    </li>
  )
}

function Result({ result }: { result: Contract.CodeResult }) {
  const { stdout, stderr, results, error, timedOut, truncated } = result
  const isEmpty = stdout === '' && stderr === '' && results.length === 0 && error === null
  return (
    <>
      {stdout !== '' && <pre className={styles.text}>{stdout}</pre>}
      {stderr !== '' && <pre className={`${styles.text} ${styles.error}`}>{stderr}</pre>}
      {results.map(({ data }, at) => (
        <CodeValue key={at} data={data} />
      ))}
      {error !== null && (
        <pre className={`${styles.text} ${styles.error}`}>
          {error.traceback.length > 0 ? error.traceback.join('\n') : `${error.name}: ${error.value}`}
        </pre>
      )}
      {timedOut && <p className={styles.quiet}>Timed out and interrupted.</p>}
      {truncated && <p className={styles.quiet}>The output was cut.</p>}
      {isEmpty && !timedOut && <p className={styles.quiet}>Finished without a value.</p>}
    </>
  )
}

/** Begins the language's contexts anew. */
function Restart({ unit, language, why }: { unit: Contract.Unit; language: Language; why: string | null }) {
  const team = useTeam()
  const path = `/v1/units/${encodeURIComponent(unit.id)}/code/contexts`
  const { mutate, isPending, isSuccess, error } = useMutation({
    mutationFn: async () => {
      const berth = berthOf(team.id)
      const { contexts } = await berth.request<Contract.CodeContextList>('GET', path)
      const of = contexts.filter((context) => context.language === language)
      await Promise.all(
        of.map(async ({ id }) => await berth.request('POST', `${path}/${encodeURIComponent(id)}/restart`)),
      )
    },
  })
  return (
    <>
      <span role="status" className={styles.hint}>
        {error !== null ? explain(error).text : isSuccess && !isPending ? 'It begins without variables.' : ''}
      </span>
      <Button kind="quiet" why={why} busy={isPending} onClick={() => mutate()}>
        Restart {language}
      </Button>
    </>
  )
}
