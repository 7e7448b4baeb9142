// A record as rows: files with their text, or variables with their value, which may be a secret.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { secretsQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { inputClass, Select } from '../ui/field.tsx'
import { newPair, type Pair } from './params.ts'
import styles from './recipes.module.css'

const words = {
  files: { name: 'Path', value: 'Text of the file', add: 'Add a file' },
  env: { name: 'Name', value: 'Value', add: 'Add a variable' },
} as const

const sources = [
  { value: 'plain', label: 'plain text' },
  { value: 'secret', label: 'secret of the unit' },
  { value: 'team', label: 'secret of the team' },
] as const

export function PairsEditor({
  label,
  note,
  kind,
  pairs,
  error,
  onChange,
}: {
  label: string
  note: string | undefined
  kind: 'files' | 'env'
  pairs: readonly Pair[]
  error: string | undefined
  onChange: (pairs: Pair[]) => void
}) {
  const id = useId()
  const team = useTeam()
  const isAsked = pairs.some(({ is }) => is === 'team')
  const { data: secrets } = useQuery({ ...secretsQuery(team.id), enabled: isAsked })
  const set = (at: number, change: Partial<Pair>) =>
    onChange(pairs.map((pair, index) => (index === at ? { ...pair, ...change } : pair)))
  const { name, value, add } = words[kind]
  return (
    <fieldset className={styles.pairs} aria-describedby={`${id}-note`}>
      <legend>{label}</legend>
      {pairs.map((pair, at) => (
        <div key={at} className={kind === 'files' ? styles.file : styles.pair}>
          <input
            className={inputClass}
            aria-label={`${name} ${at + 1}`}
            placeholder={name}
            autoComplete="off"
            spellCheck={false}
            value={pair.name}
            onChange={(event) => set(at, { name: event.target.value })}
          />
          {kind === 'files' ? (
            <textarea
              className={`${inputClass} ${styles.text}`}
              aria-label={`${value} ${at + 1}`}
              rows={5}
              spellCheck={false}
              value={pair.value}
              onChange={(event) => set(at, { value: event.target.value })}
            />
          ) : (
            <Variable pair={pair} at={at + 1} secrets={secrets} onChange={(change) => set(at, change)} />
          )}
          <Button
            kind="quiet"
            aria-label={`Remove ${pair.name || `row ${at + 1}`}`}
            onClick={() => onChange(pairs.filter((_, index) => index !== at))}
          >
            Remove
          </Button>
        </div>
      ))}
      <p id={`${id}-note`} className={styles.note}>
        {note}
      </p>
      {error !== undefined && <p className={styles.wrong}>{error}</p>}
      <div>
        <Button onClick={() => onChange([...pairs, newPair])}>{add}</Button>
      </div>
    </fieldset>
  )
}

function Variable({
  pair: { value, is },
  at,
  secrets,
  onChange,
}: {
  pair: Pair
  at: number
  secrets: readonly Contract.Secret[] | undefined
  onChange: (change: Partial<Pair>) => void
}) {
  const names = secrets?.map(({ name }) => ({ value: name, label: name })) ?? []
  return (
    <>
      {is === 'team' ? (
        <Select
          aria-label={`Secret of the team ${at}`}
          value={value}
          options={[
            { value: '', label: secrets?.length === 0 ? 'none yet: add one at Team' : 'choose one' },
            ...names,
          ]}
          onChange={(name) => onChange({ value: name })}
        />
      ) : (
        <input
          className={inputClass}
          aria-label={`Value ${at}`}
          placeholder={is === 'secret' ? 'Generated if empty' : 'Value'}
          type={is === 'secret' ? 'password' : 'text'}
          autoComplete="off"
          value={value}
          onChange={(event) => onChange({ value: event.target.value })}
        />
      )}
      <Select
        aria-label={`Kind ${at}`}
        value={is}
        options={sources}
        // A name of a secret is no value, and the other way round.
        onChange={(next) =>
          onChange({ is: next, ...(next === 'team' || is === 'team' ? { value: '' } : {}) })
        }
      />
    </>
  )
}
