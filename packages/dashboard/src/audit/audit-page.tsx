// Who did what: every call that was made for the team, as it comes.

import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { Contract } from '@berth/sdk'
import { useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { agentsQuery, type AuditAsked, auditPage } from '../api/team-queries.ts'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { download } from '../ui/download.ts'
import { inputClass, Select } from '../ui/field.tsx'
import { PageHead } from '../ui/page-parts.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { AuditRows } from './audit-rows.tsx'
import { type AuditSearch, cleanSearch, readAuditSearch } from './search.ts'
import styles from './audit.module.css'

/** Of an export: beyond it the API is the better way. */
const MAX_EXPORTED = 10_000

export function AuditPage() {
  const team = useTeam()
  const asked = readAuditSearch(useSearch({ strict: false }))
  const go = useNavigate()
  const agents = useQuery(agentsQuery(team.id))
  const filter = useRef<HTMLInputElement>(null)
  const [isExporting, setExporting] = useState(false)
  const set = (search: { [Name in keyof AuditSearch]: AuditSearch[Name] | undefined }) =>
    void go({
      to: '/t/$team/audit',
      params: { team: team.slug },
      search: cleanSearch({ ...asked, ...search }),
      replace: true,
    })
  const exportAll = async () => {
    setExporting(true)
    try {
      const events = await readAll(team.id, asked)
      download(
        'berth-audit.jsonl',
        'application/jsonl',
        events.map((event) => `${JSON.stringify(event)}\n`).join(''),
      )
      tell(`${events.length} calls exported`)
    } catch (error) {
      tellError(explain(error))
    } finally {
      setExporting(false)
    }
  }
  useKeys('Audit', [
    { keys: '/', label: 'Filter by action', run: () => filter.current?.focus() },
    { keys: 'e', label: 'Export', run: () => void exportAll() },
  ])
  return (
    <>
      <PageHead title="Audit" note="Every call, newest first.">
        <Button busy={isExporting} hint="e" onClick={() => void exportAll()}>
          Export
        </Button>
      </PageHead>
      <form className={styles.filters} aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
        <Select
          aria-label="Agent"
          value={asked.agent ?? ''}
          options={[
            { value: '', label: 'Everybody' },
            ...(agents.data?.agents ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onChange={(agent) => set({ agent: agent || undefined })}
        />
        <input
          ref={filter}
          className={`${inputClass} ${styles.word}`}
          aria-label="Action"
          placeholder="Action, such as unit.create"
          defaultValue={asked.action ?? ''}
          onChange={(event) => set({ action: event.target.value.trim() || undefined })}
        />
        <input
          className={`${inputClass} ${styles.word}`}
          aria-label="Target"
          placeholder="Id of a unit, stack or key"
          defaultValue={asked.target ?? ''}
          onChange={(event) => set({ target: event.target.value.trim() || undefined })}
        />
        <label className={styles.when}>
          from
          <input
            type="datetime-local"
            className={inputClass}
            defaultValue={localOf(asked.since)}
            onChange={(event) => set({ since: momentOf(event.target.value) })}
          />
        </label>
        <label className={styles.when}>
          to
          <input
            type="datetime-local"
            className={inputClass}
            defaultValue={localOf(asked.until)}
            onChange={(event) => set({ until: momentOf(event.target.value) })}
          />
        </label>
        <label className={styles.when}>
          <input
            type="checkbox"
            checked={asked.failed === true}
            onChange={(event) => set({ failed: event.target.checked || undefined })}
          />
          refused only
        </label>
      </form>
      <div className={styles.page}>
        <AuditRows asked={asked} />
      </div>
    </>
  )
}

async function readAll(team: string, asked: AuditAsked): Promise<Contract.AuditEvent[]> {
  const events: Contract.AuditEvent[] = []
  for (let cursor: string | null = null; events.length < MAX_EXPORTED; ) {
    const page: Contract.AuditList = await auditPage(team, asked, cursor, new AbortController().signal)
    events.push(...page.events)
    cursor = page.next
    if (cursor === null) break
  }
  return events
}

function momentOf(local: string): string | undefined {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}

function localOf(moment: string | undefined): string {
  if (moment === undefined) return ''
  const at = new Date(moment)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
