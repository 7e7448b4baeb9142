// Beside the form: what the unit costs, and the same call as code.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { pricingQuery } from '../api/queries.ts'
import { Code } from '../ui/copy.tsx'
import { Select } from '../ui/field.tsx'
import { rate } from '../ui/format.tsx'
import { Card } from '../ui/page-parts.tsx'
import { codeOf, type Language, languages } from './code.ts'
import styles from './new-unit.module.css'

export function Beside({ body }: { body: Contract.CreateFromSpec }) {
  const { data: pricing } = useQuery(pricingQuery)
  const [language, setLanguage] = useState<Language>('curl')
  const size = body.spec.size ?? 'small'
  const price = pricing?.sizes.find((each) => each.size === size)
  const gb = body.spec.volume?.gb ?? 0
  const aDay = ((pricing?.volumeCentsPerGbMonth ?? 0) * gb) / 30
  return (
    <aside className={styles.beside} aria-label="What it comes to">
      <Card title="It costs">
        <p className={styles.note}>
          {price === undefined
            ? '…'
            : `${rate(price.centsPerHour)} while it runs, and nothing while it sleeps${gb > 0 ? `; ${aDay.toFixed(2)} c a day for its volume` : ''}.`}
        </p>
      </Card>
      <Card
        title="The same as code"
        action={
          <Select
            aria-label="Language"
            value={language}
            options={languages.map((each) => ({ value: each, label: each }))}
            onChange={setLanguage}
          />
        }
      >
        <Code text={codeOf(language, location.origin, body)} label={`the call in ${language}`} />
      </Card>
    </aside>
  )
}
