// A command for a user that its unit does not have.

import { validation } from '../../contract/errors.ts'
import { isEngineError } from '../../engine/errors.ts'

/** Returns other errors as they are. */
export function unknownUser(error: unknown): unknown {
  if (!isEngineError(error, 'unknown_user')) return error
  return validation([{ path: 'user', message: error.publicMessage }])
}
