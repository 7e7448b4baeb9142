// Errors in the form of the Connect protocol.

import { Code, ConnectError } from '@connectrpc/connect'
import { toAppError } from '../../http/errors.ts'
import { SandboxGone } from '../errors.ts'

const codes: Record<number, Code> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  402: Code.FailedPrecondition,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.FailedPrecondition,
  413: Code.InvalidArgument,
  415: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  499: Code.Canceled,
  502: Code.Internal,
  503: Code.Unavailable,
}

export function toConnectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error
  if (error instanceof SandboxGone) return new ConnectError(error.message, Code.Unavailable)
  const { status, message, retryAfterS } = toAppError(error)
  const headers = retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }
  return new ConnectError(message, codes[status] ?? Code.Internal, headers)
}
