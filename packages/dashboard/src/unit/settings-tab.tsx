// What can be changed of a unit: how long it idles, and its end. The rest is as it was made.

import type { Contract } from '@berth/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Card, KeyValue } from '../ui/page-parts.tsx'
import { DestroyUnits } from '../units/destroy-units.tsx'
import { SleepForm } from './sleep-form.tsx'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

export function SettingsTab() {
  const unit = useUnit()
  const team = useTeam()
  const navigate = useNavigate()
  const [doomed, setDoomed] = useState<Contract.Unit[]>([])
  return (
    <div className={`${styles.settings} ${styles.beside}`}>
      <Card title="Sleep">
        <SleepForm key={unit.sleep} unit={unit} />
      </Card>
      <Card title="Configuration">
        <KeyValue rows={madeOf(unit)} />
        <p className={styles.after}>
          Name, image, size, environment and ports cannot be changed. Create a new unit for other settings.
        </p>
      </Card>
      <Card title="Destroy this unit">
        <p className={styles.quiet}>Its disk and volume are deleted, and its URLs stop working.</p>
        <div className={styles.after}>
          <Button kind="danger" why={whyNot(unit, 'destroy')} onClick={() => setDoomed([unit])}>
            Destroy…
          </Button>
        </div>
      </Card>
      <DestroyUnits
        units={doomed}
        onClose={() => setDoomed([])}
        onDone={() => void navigate({ to: '/t/$team/units', params: { team: team.slug } })}
      />
    </div>
  )
}

function madeOf({
  size,
  cmd,
  entrypoint,
  volume,
  healthcheck,
  files,
  nested,
  runtime,
}: Contract.Unit): [string, string][] {
  return [
    ['Size', size],
    ['Command', cmd === null ? 'from the image' : JSON.stringify(cmd)],
    ['Entrypoint', entrypoint === null ? 'from the image' : JSON.stringify(entrypoint)],
    ['Volume', volume === null ? 'none' : `${volume.gb} GB at ${volume.mount}`],
    ['Health check', healthcheck === null ? 'none' : JSON.stringify(healthcheck.cmd)],
    ['Runs with', runtime ?? 'not known yet'],
    ['Containers inside', nested ? 'allowed' : 'no'],
    ['Boot files', files.map(({ path }) => path).join(', ') || 'none'],
  ]
}
