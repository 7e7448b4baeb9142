// Asks before units are stopped: unlike a sleeping one, a stopped unit does not come back by itself.

import type { Contract } from '@berth/sdk'
import { useTeam } from '../shell/team-context.ts'
import { Confirm } from '../ui/dialog.tsx'
import { actOnAll } from './actions.ts'

export function StopUnits({
  units,
  onClose,
  onDone,
}: {
  units: Contract.Unit[]
  onClose: () => void
  onDone?: () => void
}) {
  const team = useTeam()
  const isOne = units.length === 1
  const what = isOne ? (units[0]?.name ?? '') : `${units.length} units`
  return (
    <Confirm
      title={`Stop ${what}?`}
      action={isOne ? 'Stop it' : `Stop ${what}`}
      isOpen={units.length > 0}
      onClose={onClose}
      onConfirm={async () => {
        await actOnAll(team.id, units, 'stop')
        onDone?.()
      }}
    >
      <p>
        What runs in {isOne ? 'it' : 'them'} ends, and visits and calls do not wake {isOne ? 'it' : 'them'}{' '}
        until {isOne ? 'it is' : 'they are'} started. {isOne ? 'Its disk is' : 'Their disks are'} kept.
      </p>
    </Confirm>
  )
}
