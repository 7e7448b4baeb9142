// The columns of `users`, `teams` and `memberships` (store/teams.ts).

import type { ColumnType, Generated } from 'kysely'
import type { EgressRules } from '../../lib/egress/rules.ts'

export type Plan = 'hobby' | 'pro' | 'team'

export type Role = 'owner' | 'admin' | 'member'

export type UsersTable = {
  id: string
  email: string
  name: string
  email_verified: boolean
  admin: boolean
  created_at: Date
}

export type TeamsTable = {
  id: string
  slug: string
  name: string
  personal: boolean
  plan: Plan
  region: 'paris' | 'virginia' | 'singapore'
  currency: 'eur' | 'usd'
  pays_as_it_goes: boolean
  /** A unique number by which the engine distinguishes teams (design 3). */
  network_group: Generated<number>
  created_at: Date
  /** The most that its units may reach; null: everything. */
  egress: ColumnType<EgressRules | null, never, EgressRules | null>
  deleted_at: ColumnType<Date | null, never, Date>
}

export type MembershipsTable = {
  team_id: string
  user_id: string
  role: Role
  joined_at: Date
}
