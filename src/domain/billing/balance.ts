import type { Kysely } from 'kysely'
import type { Database } from '../../store/db.ts'

/** Of teams by id. */
export async function creditBalanceCents(
  _db: Kysely<Database>,
  teamIds: readonly string[],
): Promise<Map<string, number>> {
  // Until there is a ledger to sum up, nobody has credits.
  return new Map(teamIds.map((id) => [id, 0]))
}
