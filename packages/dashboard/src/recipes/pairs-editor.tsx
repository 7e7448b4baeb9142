// A record as rows: files with their text, or variables with their value, which may be a secret.

import { useId } from 'react'
import { Button } from '../ui/button.tsx'
import { inputClass } from '../ui/field.tsx'
import { newPair, type Pair } from './params.ts'
import styles from './recipes.module.css'

const words = {
  files: { name: 'Path', value: 'Text of the file', add: 'Add a file' },
  env: { name: 'Name', value: 'Value', add: 'Add a variable' },
} as const

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
            <>
              <input
                className={inputClass}
                aria-label={`${value} ${at + 1}`}
                placeholder={pair.isSecret ? 'Empty: one is made' : value}
                type={pair.isSecret ? 'password' : 'text'}
                autoComplete="off"
                value={pair.value}
                onChange={(event) => set(at, { value: event.target.value })}
              />
              <label className={styles.secret}>
                <input
                  type="checkbox"
                  checked={pair.isSecret}
                  onChange={(event) => set(at, { isSecret: event.target.checked })}
                />
                secret
              </label>
            </>
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
