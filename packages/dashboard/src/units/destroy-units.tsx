// Asks before units are destroyed, and says what is lost with them.

import type { Contract } from '@berth/sdk'
import { useTeam } from '../shell/team-context.ts'
import { Confirm } from '../ui/dialog.tsx'
import { Money } from '../ui/format.tsx'
import { actOnAll } from './actions.ts'

export function DestroyUnits({
  units,
  onClose,
  onDone,
}: {
  units: Contract.Unit[]
  onClose: () => void
  onDone?: () => void
}) {
  const team = useTeam()
  const [first] = units
  const isOne = units.length === 1
  const endpoints = units.reduce((sum, unit) => sum + unit.endpoints.length, 0)
  const cost = units.reduce((sum, unit) => sum + unit.costCentsSoFar, 0)
  return (
    <Confirm
      title={isOne ? `Destroy ${first?.name}?` : `Destroy ${units.length} units?`}
      action={isOne ? 'Destroy it' : `Destroy ${units.length} units`}
      word={units.length > 1 ? 'destroy' : null}
      isOpen={units.length > 0}
      onClose={onClose}
      onConfirm={async () => {
        await actOnAll(team.id, units, 'destroy')
        onDone?.()
      }}
    >
      {!isOne && (
        <p>
          {units
            .slice(0, 6)
            .map(({ name }) => name)
            .join(', ')}
          {units.length > 6 && ` and ${units.length - 6} more`}
        </p>
      )}
      <p>
        Deleted for good: {isOne ? 'its disk' : 'their disks'} and volume, what runs in{' '}
        {isOne ? 'it' : 'them'}
        {endpoints > 0 && `, and ${endpoints === 1 ? 'its address' : `${endpoints} addresses`}`}. It cost{' '}
        <Money cents={cost} /> so far.
      </p>
    </Confirm>
  )
}
