// Every call that was about this unit.

import { AuditRows } from '../audit/audit-rows.tsx'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

export function ActivityTab() {
  const unit = useUnit()
  return (
    <div className={styles.wide}>
      <AuditRows asked={{ target: unit.id }} />
    </div>
  )
}
