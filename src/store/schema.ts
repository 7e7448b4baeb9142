// The tables of the database, each described in tables/. Columns are snake_case as in SQL; the rest of the code uses camelCase.

import type { AllowancesTable } from './tables/allowances.ts'
import type { AuditTable } from './tables/audit.ts'
import type { BootFilesTable } from './tables/boot-files.ts'
import type { BalancesTable, ChargesTable, UsageDaysTable } from './tables/charges.ts'
import type { CredentialsTable } from './tables/credentials.ts'
import type { CreditsTable } from './tables/credits.ts'
import type { DataKeysTable } from './tables/data-keys.ts'
import type { EgressLogTable } from './tables/egress-log.ts'
import type { EndpointsTable } from './tables/endpoints.ts'
import type { ForksTable } from './tables/forks.ts'
import type { HeartbeatsTable } from './tables/heartbeats.ts'
import type { HostedEnvironmentsTable, HostedSessionsTable } from './tables/hosted-agents.ts'
import type { HostEventsTable, HostsTable } from './tables/hosts.ts'
import type { IdempotencyKeysTable } from './tables/idempotency.ts'
import type { IdentitiesTable, ProviderSignInsTable } from './tables/identities.ts'
import type { InstancesTable } from './tables/instances.ts'
import type { InvitesTable } from './tables/invites.ts'
import type { KeptLogsTable } from './tables/kept-logs.ts'
import type { LeadersTable } from './tables/leaders.ts'
import type { MailsTable } from './tables/mails.ts'
import type { MetersTable } from './tables/meters.ts'
import type { OauthClientsTable } from './tables/oauth-clients.ts'
import type { OauthFamiliesTable, OauthTokensTable } from './tables/oauth-families.ts'
import type { OauthCodesTable, OauthRequestsTable } from './tables/oauth-requests.ts'
import type { PaymentsTable } from './tables/payments.ts'
import type { RateWindowsTable } from './tables/rate-windows.ts'
import type { SecretsTable, TeamSecretsTable } from './tables/secrets.ts'
import type { SessionsTable, SignInLinksTable } from './tables/sessions.ts'
import type { StacksTable } from './tables/stacks.ts'
import type { MembershipsTable, TeamsTable, UsersTable } from './tables/teams.ts'
import type { UnitCheckpointsTable } from './tables/unit-checkpoints.ts'
import type { UnitMetricsTable } from './tables/unit-metrics.ts'
import type { UnitsTable } from './tables/unit-record.ts'

export type Database = {
  users: UsersTable
  teams: TeamsTable
  memberships: MembershipsTable
  invites: InvitesTable
  credentials: CredentialsTable
  sessions: SessionsTable
  sign_in_links: SignInLinksTable
  audit: AuditTable
  stacks: StacksTable
  units: UnitsTable
  meters: MetersTable
  charges: ChargesTable
  usage_days: UsageDaysTable
  balances: BalancesTable
  credits: CreditsTable
  secrets: SecretsTable
  team_secrets: TeamSecretsTable
  boot_files: BootFilesTable
  kept_logs: KeptLogsTable
  egress_log: EgressLogTable
  unit_metrics: UnitMetricsTable
  unit_checkpoints: UnitCheckpointsTable
  heartbeats: HeartbeatsTable
  hosts: HostsTable
  host_events: HostEventsTable
  hosted_environments: HostedEnvironmentsTable
  hosted_sessions: HostedSessionsTable
  idempotency_keys: IdempotencyKeysTable
  endpoints: EndpointsTable
  forks: ForksTable
  mails: MailsTable
  payments: PaymentsTable
  allowances: AllowancesTable
  identities: IdentitiesTable
  provider_sign_ins: ProviderSignInsTable
  rate_windows: RateWindowsTable
  data_keys: DataKeysTable
  leaders: LeadersTable
  instances: InstancesTable
  oauth_clients: OauthClientsTable
  oauth_requests: OauthRequestsTable
  oauth_codes: OauthCodesTable
  oauth_families: OauthFamiliesTable
  oauth_tokens: OauthTokensTable
}
