// The column beside the form: what the unit costs, and the same call as code.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { pricingQuery } from '../api/queries.ts'
import { amount, rate } from '../ui/format.tsx'
import { Card } from '../ui/page-parts.tsx'
import { SameAsCode } from '../ui/same-as-code.tsx'
import { codeOf, languages } from './code.ts'
import styles from './new-unit.module.css'

export function Beside({ body }: { body: Contract.CreateFromSpec }) {
  const { data: pricing } = useQuery(pricingQuery)
  const size = body.spec.size ?? 'small'
  const price = pricing?.sizes.find((each) => each.size === size)
  const gb = body.spec.volume?.gb ?? 0
  const aDay = ((pricing?.volumeCentsPerGbMonth ?? 0) * gb) / 30
  return (
    <aside className={styles.beside} aria-label="Cost">
      <Card title="Cost">
        <p className={styles.note}>
          {price === undefined
            ? '…'
            : `${rate(price.centsPerHour)} while it runs, and nothing while it sleeps${gb > 0 ? `; ${amount(aDay)} a day for its volume` : ''}.`}
        </p>
      </Card>
      <SameAsCode languages={languages} codeIn={(language) => codeOf(language, location.origin, body)} />
    </aside>
  )
}
