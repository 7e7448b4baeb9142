// The errors of an engine. The domain translates them into the contract's errors in one place; `message` is for the
// operator's log, `publicMessage` may reach a caller.

/** Every kind of engine error, and what it means. */
export const engineErrorKinds = [
  'image_not_found', // the registry knows no such image or tag
  'image_denied', // the registry wants credentials, or the address is refused
  'image_unavailable', // the registry cannot be reached, or answers with an error
  'image_invalid', // unpacking refused it: too large, too many files, not an image
  'host_full', // the reserve of disk, memory or addresses is used up
  'not_running', // the machine has no running process
  'run_ended', // it had, and was stopped or destroyed while a command ran, which was killed with it
  'frozen', // it has, but they stand still: thaw it first
  'run_lost', // this generation of the machine will never run: ask with a newer one
  'unknown_machine',
  'start_failed', // the runtime could not start it, often the caller's command
  'start_refused', // what lies on the machine's own disk is in the way of its start
  'unknown_process',
  'process_ended', // it can be given no signal any more
  'input_ended', // its standard input is closed, or was never open to calls
  'process_limit', // as many run as may
  'process_refused', // the machine could not begin it: it has as many processes as it may have
  'file_not_found',
  'not_a_file',
  'not_a_directory',
  'directory_not_empty',
  'not_an_archive',
  'file_too_large',
  'unknown_user', // the machine has no such account
  'file_refused', // the machine's file system said no: read-only, no permission
  'disk_full', // nothing more can be written where the path lies
  'bad_path',
  'bad_cursor',
  'timeout',
  'stale_caller', // a server that another one has taken over from
  'engine_away', // its process is down or restarting: the same call may work in a moment
  'internal',
] as const

export type EngineErrorKind = (typeof engineErrorKinds)[number]

export class EngineError extends Error {
  readonly kind: EngineErrorKind
  /** A sentence without host paths, addresses or other machines. */
  readonly publicMessage: string
  /** Of `engine_away`: since when its host does not answer, where that is known. */
  readonly awaySince: Date | null

  constructor(
    kind: EngineErrorKind,
    publicMessage: string,
    { awaySince, ...options }: { cause?: unknown; awaySince?: Date } = {},
  ) {
    super(publicMessage, options)
    this.awaySince = awaySince ?? null
    this.name = 'EngineError'
    this.kind = kind
    this.publicMessage = publicMessage
  }
}

/** The operator has given up the host of the unit, so nothing is asked. */
export class HostLostError extends EngineError {
  constructor() {
    super('unknown_machine', 'The host of this unit was given up.')
    this.name = 'HostLostError'
  }
}

export function isEngineError(error: unknown, kind?: EngineErrorKind): error is EngineError {
  return error instanceof EngineError && (kind === undefined || error.kind === kind)
}
