// What the cost was for: by unit, stack or agent.

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { usagePartsQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { DataTable } from '../ui/data-table.tsx'
import { Select } from '../ui/field.tsx'
import { Money } from '../ui/format.tsx'
import { Card, Failure, Skeleton } from '../ui/page-parts.tsx'
import { partsOf } from './spend-sums.ts'

const kinds = [
  { value: 'unit', label: 'by unit' },
  { value: 'stack', label: 'by stack' },
  { value: 'agent', label: 'by agent' },
] as const

export function Parts({ days }: { days: number }) {
  const team = useTeam()
  const [by, setBy] = useState<(typeof kinds)[number]['value']>('unit')
  const { data, error, refetch } = useQuery({
    ...usagePartsQuery(team.id, days, by),
    placeholderData: keepPreviousData,
  })
  // What stands below does not move up under the eyes of who chooses another kind.
  const shown = useRef<HTMLDivElement>(null)
  const [minHeight, setMinHeight] = useState(0)
  return (
    <Card
      title="Breakdown"
      action={
        <Select
          aria-label="Breakdown"
          value={by}
          options={kinds}
          onChange={(kind) => {
            setMinHeight(shown.current?.offsetHeight ?? 0)
            setBy(kind)
          }}
        />
      }
    >
      <div ref={shown} style={{ minHeight }}>
        {error !== null ? (
          <Failure {...explain(error)} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Skeleton rows={4} />
        ) : (
          <DataTable
            label="Cost of each"
            rows={partsOf(data.days)}
            keyOf={({ id }) => id}
            columns={[
              { head: 'Name', cell: ({ name }) => <bdi>{name}</bdi> },
              { head: 'Cost', cell: ({ costCents }) => <Money cents={costCents} />, kind: 'number' },
            ]}
          />
        )}
      </div>
    </Card>
  )
}
