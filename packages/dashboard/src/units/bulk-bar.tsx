// What can be done with the selected units at once.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { actOnAll, type QuickAction } from './actions.ts'
import styles from './bulk-bar.module.css'

export function BulkBar({
  units,
  onDone,
  onStop,
  onDestroy,
}: {
  units: Contract.Unit[]
  onDone: () => void
  onStop: () => void
  onDestroy: () => void
}) {
  const team = useTeam()
  const [busy, setBusy] = useState<QuickAction | null>(null)
  useKeys('Selected', [{ keys: 'Escape', label: 'Select none', run: onDone }])
  const run = async (action: QuickAction) => {
    setBusy(action)
    await actOnAll(team.id, units, action)
    setBusy(null)
    onDone()
  }
  return (
    <div role="toolbar" aria-label="Selected units" className={styles.bar}>
      <b>{units.length} selected</b>
      <Button busy={busy === 'sleep'} onClick={() => void run('sleep')}>
        Sleep now
      </Button>
      <Button onClick={onStop}>Stop…</Button>
      <Button busy={busy === 'start'} onClick={() => void run('start')}>
        Start
      </Button>
      <Button kind="danger" onClick={onDestroy}>
        Destroy…
      </Button>
      <Button kind="quiet" hint="Esc" onClick={onDone}>
        None
      </Button>
    </div>
  )
}
