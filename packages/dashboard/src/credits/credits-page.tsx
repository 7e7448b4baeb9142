// The team's balance, and the credits that it was given or bought.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { explain } from '../api/explain.ts'
import { moneyQuery } from '../api/queries.ts'
import { paymentsQuery } from '../api/team-queries.ts'
import { useHere } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Money, Time } from '../ui/format.tsx'
import { Card, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { Buy } from './buy.tsx'
import styles from './credits.module.css'

export function CreditsPage() {
  const { team, me } = useHere()
  const left = useQuery(moneyQuery(team.id))
  return (
    <>
      <PageHead title="Credits" note="What the team has left to spend." />
      <div className={styles.page}>
        {left.error !== null && <Failure {...explain(left.error)} onRetry={() => void left.refetch()} />}
        <Card title="Balance">
          <p className={styles.balance}>{left.data ? <Money cents={left.data.creditBalanceCents} /> : '…'}</p>
          <p className={styles.lead}>
            {team.paysAsItGoes
              ? 'This team pays as it goes: its units also run without credits.'
              : 'Without credits the units of this team are stopped. Their disks stay.'}
          </p>
        </Card>
        {me.payments && team.role !== 'member' && (
          <Card title="Add credits">
            <Buy />
          </Card>
        )}
        <Payments />
        {!me.payments && <p className={styles.lead}>Credits come from the operator of this service.</p>}
      </div>
    </>
  )
}

function Payments() {
  const { team, me } = useHere()
  const { data, error, refetch } = useQuery({ ...paymentsQuery(team.id), enabled: me.payments })
  if (!me.payments) return null
  if (error !== null) return <Failure {...explain(error)} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton rows={3} />
  return (
    <Card title="Payments">
      {data.payments.length === 0 ? (
        <p className={styles.lead}>None so far.</p>
      ) : (
        <DataTable
          label="Payments"
          rows={data.payments}
          keyOf={({ id }) => id}
          columns={[
            { head: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
            { head: 'State', cell: ({ state }) => words[state] },
            { head: 'Amount', cell: ({ amountCents }) => <Money cents={amountCents} />, kind: 'number' },
            { head: 'Next', cell: (payment) => <Pay payment={payment} />, kind: 'number' },
          ]}
        />
      )}
    </Card>
  )
}

const words = {
  created: 'being made',
  open: 'not paid yet',
  paid: 'paid',
  expired: 'expired',
  failed: 'failed',
} as const satisfies Record<Contract.Payment['state'], string>

function Pay({ payment: { checkoutUrl } }: { payment: Contract.Payment }) {
  if (checkoutUrl === null) return null
  return (
    <a className={buttonClass()} href={checkoutUrl} rel="noopener noreferrer">
      Pay
    </a>
  )
}
