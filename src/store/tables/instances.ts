// The columns of `instances` (store/instances.ts).

import type { Generated } from 'kysely'

export type InstancesTable = { id: string; met_at: Generated<Date> }
