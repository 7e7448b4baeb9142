// What was done to this unit: changes, and on request every call.

import { useState } from 'react'
import { AuditRows } from '../audit/audit-rows.tsx'
import { Segments } from '../ui/segments.tsx'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

const kinds = ['Changes', 'All calls'] as const

export function ActivityTab() {
  const unit = useUnit()
  const [kind, setKind] = useState<(typeof kinds)[number]>('Changes')
  return (
    <div className={styles.wide}>
      <div className={styles.kinds}>
        <Segments label="Calls shown" value={kind} options={kinds} onChange={setKind} />
      </div>
      <AuditRows
        key={kind}
        here={unit.id}
        asked={{ target: unit.id, changes: kind === 'Changes' || undefined }}
      />
    </div>
  )
}
