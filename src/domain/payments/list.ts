import type { App } from '../../app.ts'
import type { PaymentList } from '../../contract/payment.ts'
import { listPayments } from '../../store/payments.ts'
import type { Caller } from '../credentials/caller.ts'
import { toPayment } from './to-payment.ts'

const MOST = 100

export async function listPaymentsOfCaller({ db }: App, { teamId }: Caller): Promise<PaymentList> {
  return { payments: (await listPayments(db, { teamId, limit: MOST })).map(toPayment) }
}
