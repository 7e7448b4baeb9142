// Who did what, as it comes: changes as sentences, and on request every call.

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
import { Segments } from '../ui/segments.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { AuditRows } from './audit-rows.tsx'
import { type AuditSearch, cleanSearch, readAuditSearch } from './search.ts'
import styles from './audit.module.css'

/** Of an export: beyond it the API is the better way. */
const MAX_EXPORTED = 10_000

export function AuditPage() {
  const team = useTeam()
  const { all, ...filter } = readAuditSearch(useSearch({ strict: false }))
  const asked: AuditAsked = { ...filter, changes: all ? undefined : true }
  const go = useNavigate()
  const agents = useQuery(agentsQuery(team.id))
  const action = useRef<HTMLInputElement>(null)
  const [isExporting, setExporting] = useState(false)
  const set = (search: { [Name in keyof AuditSearch]: AuditSearch[Name] | undefined }) =>
    void go({
      to: '/t/$team/audit',
      params: { team: team.slug },
      search: cleanSearch({ ...filter, all, ...search }),
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
  useKeys('Activity', [
    { keys: '/', label: 'Filter by action', run: () => action.current?.focus() },
    { keys: 'e', label: 'Export', run: () => void exportAll() },
  ])
  return (
    <>
      <PageHead title="Activity" note="Newest first.">
        <Button busy={isExporting} hint="e" onClick={() => void exportAll()}>
          Export
        </Button>
      </PageHead>
      <form className={styles.filters} aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
        <Segments
          label="Calls shown"
          value={all ? 'All calls' : 'Changes'}
          options={['Changes', 'All calls']}
          onChange={(kind) => set({ all: kind === 'All calls' || undefined })}
        />
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
          ref={action}
          className={`${inputClass} ${styles.word}`}
          aria-label="Action"
          placeholder="Action: unit.create"
          defaultValue={asked.action ?? ''}
          onChange={(event) => set({ action: event.target.value.trim() || undefined })}
        />
        <input
          className={`${inputClass} ${styles.word}`}
          aria-label="Target"
          placeholder="ID of unit, stack or key"
          defaultValue={asked.target ?? ''}
          onChange={(event) => set({ target: event.target.value.trim() || undefined })}
        />
        <label className={styles.when}>
          From
          <input
            type="datetime-local"
            className={inputClass}
            defaultValue={localOf(asked.since)}
            onChange={(event) => set({ since: momentOf(event.target.value) })}
          />
        </label>
        <label className={styles.when}>
          To
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
          Refused only
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
