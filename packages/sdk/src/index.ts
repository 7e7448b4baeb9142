// Berth from TypeScript: container units for AI agents. README.md has the first steps.

export { Berth, type AuditFilter, type TeamEvent, type UsageOptions } from './berth.ts'
export { type Code, type CodeImage, CodeOutcome, type RunCodeOptions } from './code.ts'
export { Command, type ExecOptions, type Exit, OutputPiece, type SpawnOptions } from './command.ts'
export type * as Contract from './contract.ts'
export { errorCodes, type ErrorCode, type ExecResult, type LogLine, type Policy } from './contract.ts'
export {
  BerthError,
  type BerthErrorCode,
  type ClientErrorCode,
  clientErrorCodes,
  CommandError,
  isBerthError,
} from './errors.ts'
export type { Files, WatchedChange } from './files.ts'
export type { HostedAgents } from './hosted-agents.ts'
export type { List, ListOptions, Page } from './list.ts'
export type { FollowOptions, LogOptions } from './logs.ts'
export { type OutputOptions, Process, type Processes, type Signal, type StartOptions } from './processes.ts'
export { describeProgress, type UnitProgress } from './progress.ts'
export type { RecipeName, RecipeOutputs, RecipeResult, Recipes, RunOptions } from './recipes.ts'
export type { Secrets } from './secrets.ts'
export { type BerthOptions, type Fetch, version } from './settings.ts'
export { quote } from './shell.ts'
export type { StreamEvent } from './sse.ts'
export { type ForkedStack, Stack, type Stacks } from './stacks.ts'
export { Terminal, type TerminalOptions, type TerminalOutput, type TerminalSignal } from './terminal.ts'
export type { CallOptions, MakeOptions } from './transport.ts'
export { type ExposeOptions, type ForkOptions, type Making, Unit } from './unit.ts'
export { type CreateOptions, nameFor, type UnitFilter, type UnitListOptions, type Units } from './units.ts'
