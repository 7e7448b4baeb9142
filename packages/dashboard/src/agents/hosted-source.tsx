// What the unit of a session begins as: a new one, or a copy of one that was prepared.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { unitsQuery } from '../api/queries.ts'
import { egressTextsOf } from '../egress/egress-text.ts'
import { useTeam } from '../shell/team-context.ts'
import { Field, Select } from '../ui/field.tsx'
import { type HostedFieldProps, type HostedTexts, isSource, sourceOptions } from './hosted-text.ts'

export function SourceField({ texts, fault, onChange }: HostedFieldProps) {
  const team = useTeam()
  const { data } = useQuery(unitsQuery(team.id))
  const sources = (data?.units ?? []).filter(isSource)
  const { copyOf } = texts
  const isGone = copyOf !== '' && data?.isComplete === true && !sources.some(({ id }) => id === copyOf)
  const gone = isGone ? 'Choose another: sessions cannot begin.' : undefined
  const note =
    copyOf === '' || isGone
      ? undefined
      : 'With its files and processes. Image, size and rules are those of that unit.'
  return (
    <Field label="Begins as" note={note} error={fault ?? gone}>
      {(props) => (
        <Select
          {...props}
          value={copyOf}
          options={sourceOptions(sources, copyOf, isGone)}
          onChange={(chosen) => onChange(withSource(texts, chosen, sources))}
        />
      )}
    </Field>
  )
}

/** The key is bounded by the unit that is copied, and so is a session that cannot be a copy. */
function withSource(texts: HostedTexts, copyOf: string, sources: readonly Contract.Unit[]): HostedTexts {
  const source = sources.find(({ id }) => id === copyOf)
  if (!source) return { ...texts, copyOf }
  const { image, size, egress } = source
  return { ...texts, copyOf, image, size, egress: egressTextsOf(egress) }
}
