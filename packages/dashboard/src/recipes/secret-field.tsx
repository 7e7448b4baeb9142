// A brokered secret of a recipe: one of the team, or a value for this unit alone.

import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { secretsQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { newPair, type Pair } from './params.ts'
import styles from './recipes.module.css'

/** What an option's value begins with: names of secrets have no blank. */
const OWN = ' own'

export function SecretField({
  label,
  note,
  isOptional,
  pair,
  error,
  onChange,
}: {
  label: string
  note: string
  isOptional: boolean
  pair: Pair
  error: string | undefined
  onChange: (pair: Pair) => void
}) {
  const team = useTeam()
  const { data: secrets } = useQuery(secretsQuery(team.id))
  const names = secrets?.map(({ name }) => name) ?? []
  const isOwn = pair.is === 'secret'
  const isMissing = secrets !== undefined && !isOwn && pair.value !== '' && !names.includes(pair.value)
  // The team has none of the name by which the recipe asks for it: the person has the key at hand.
  useEffect(() => {
    if (isMissing) onChange({ ...newPair, is: 'secret' })
  }, [isMissing, onChange])
  const shown = secrets === undefined && pair.value !== '' && !isOwn ? [pair.value] : names
  return (
    <Field label={label} note={note} error={error}>
      {(props) => (
        <div className={styles.secret}>
          <Select
            id={props.id}
            value={isOwn ? OWN : pair.value}
            options={[
              ...(isOptional ? [{ value: '', label: 'none' }] : []),
              ...shown.map((name) => ({ value: name, label: `${name} of the team` })),
              { value: OWN, label: 'for this unit only' },
            ]}
            onChange={(value) =>
              onChange(value === OWN ? { ...newPair, is: 'secret' } : { ...newPair, value, is: 'team' })
            }
          />
          {isOwn && (
            <input
              className={inputClass}
              aria-label={`Value of ${label}`}
              aria-describedby={props['aria-describedby']}
              type="password"
              placeholder="Paste it: it cannot be read back"
              autoComplete="off"
              spellCheck={false}
              value={pair.value}
              onChange={(event) => onChange({ ...pair, value: event.target.value })}
            />
          )}
        </div>
      )}
    </Field>
  )
}
