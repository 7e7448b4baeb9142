// Runs one command in the unit. Its output is shown as plain text.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useRef } from 'react'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { inputClass } from '../ui/field.tsx'
import { Card } from '../ui/page-parts.tsx'
import styles from './unit.module.css'

export function UnitCommand({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const line = useRef<HTMLInputElement>(null)
  const why = whyNot(unit, 'exec')
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async (command: string) =>
      await berthOf(team.id).request<Contract.ExecResult>(
        'POST',
        `/v1/units/${encodeURIComponent(unit.id)}/exec`,
        { body: { cmd: ['sh', '-c', command] }, extraMs: 120_000 },
      ),
  })
  const failure = error === null ? null : explain(error)
  return (
    <Card title="Run a command">
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault()
          const command = line.current?.value.trim() ?? ''
          if (command !== '' && why === null && !isPending) mutate(command)
        }}
      >
        <input
          ref={line}
          className={inputClass}
          aria-label="Command"
          placeholder="echo hello"
          autoComplete="off"
          spellCheck={false}
        />
        <Button type="submit" why={why} busy={isPending}>
          Run
        </Button>
      </form>
      <div role="status">
        {isPending && <p className={styles.quiet}>Running…</p>}
        {failure && (
          <p className={styles.stderr}>
            {failure.title}: {failure.text}
          </p>
        )}
        {data && !isPending && (
          <>
            <pre className={styles.output} tabIndex={0} role="region" aria-label="What it printed">
              {data.stdout}
              {data.stderr !== '' && <span className={styles.stderr}>{data.stderr}</span>}
            </pre>
            <p className={styles.quiet}>
              {data.timedOut ? 'Timed out.' : `Exited with code ${data.exitCode}.`}
              {data.truncated && ' It printed more than is shown.'}
            </p>
          </>
        )}
      </div>
    </Card>
  )
}
