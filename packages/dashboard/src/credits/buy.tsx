// Buys credits: the payment is made, and its checkout opens in this tab.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { limits } from '../../../../src/contract/limits.ts'
import { centsOf } from '../agents/policy-text.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, inputClass } from '../ui/field.tsx'
import { euros } from '../../../../src/lib/money.ts'
import { tellError } from '../ui/toast.tsx'
import styles from './credits.module.css'

export function Buy() {
  const team = useTeam()
  const [text, setText] = useState('20.00')
  const [isBusy, setBusy] = useState(false)
  const { min, max } = limits.paymentCents
  const cents = centsOf(text)
  const fault =
    cents === null || cents < min || cents > max
      ? `From ${euros(min)} to ${euros(max)}, such as 20.00.`
      : undefined
  const buy = async () => {
    setBusy(true)
    try {
      const { payment } = await berthOf(team.id).request<Contract.PaymentAnswer>(
        'POST',
        `/v1/teams/${encodeURIComponent(team.id)}/payments`,
        { body: { amountCents: cents } },
      )
      if (payment.checkoutUrl !== null) location.assign(payment.checkoutUrl)
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className={styles.buy}
      aria-label="Add credits"
      onSubmit={(event) => {
        event.preventDefault()
        if (fault === undefined) void buy()
      }}
    >
      <Field label="Amount in euros" error={fault}>
        {(props) => (
          <input
            {...props}
            className={inputClass}
            inputMode="decimal"
            autoComplete="off"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <div>
        <Button type="submit" kind="main" busy={isBusy} why={fault ?? null}>
          Go to the checkout
        </Button>
      </div>
    </form>
  )
}
