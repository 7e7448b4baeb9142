// Code in contexts of a unit of the image berth.local/code: variables stay from one run to the next.

import type {
  CodeContext,
  CodeContextCreate,
  CodeContextList,
  CodeResult,
  CodeRun,
  CodeValue,
} from './contract.ts'
import { bytesOfBase64 } from './command.ts'
import type { AbortSignal } from './platform.ts'
import type { StreamEvent } from './sse.ts'
import { type CallOptions, type Transport } from './transport.ts'

export type RunCodeOptions = Omit<CodeRun, 'code' | 'context'> & {
  /** A context, or its id. Default: the one of the language. */
  context?: string | CodeContext | undefined
  /** Interrupts the code. */
  signal?: AbortSignal | undefined
}

export type Code = {
  /** Runs code to its end. An error of the code is in the answer, and none of the call. */
  run: (code: string, options?: RunCodeOptions) => Promise<CodeOutcome>
  /** The events `begin`, `stdout`, `stderr`, `result`, `exception` and `end`, as they come. */
  stream: (code: string, options?: RunCodeOptions) => AsyncGenerator<StreamEvent>
  createContext: (context?: CodeContextCreate, options?: CallOptions) => Promise<CodeContext>
  /** Oldest first. */
  contexts: (options?: CallOptions) => Promise<CodeContext[]>
  /** Begins it anew, without its variables. */
  restart: (context: string | CodeContext, options?: CallOptions) => Promise<CodeContext>
  /** As Ctrl-C does: its variables stay. */
  interrupt: (context: string | CodeContext, options?: CallOptions) => Promise<CodeContext>
  delete: (context: string | CodeContext, options?: CallOptions) => Promise<void>
}

/** A picture that the code made. */
export type CodeImage = { mime: string; bytes: Uint8Array }

/** What a run of code gave. */
export class CodeOutcome {
  /** As the answer has it. */
  readonly info: CodeResult

  constructor(info: CodeResult) {
    this.info = info
  }

  get stdout(): string {
    return this.info.stdout
  }

  get stderr(): string {
    return this.info.stderr
  }

  /** Each value in its forms, by MIME type. */
  get results(): readonly CodeValue[] {
    return this.info.results
  }

  /** Null if the code ended well. */
  get error(): CodeResult['error'] {
    return this.info.error
  }

  /** The value of the last line as text; null if it has none. */
  get text(): string | null {
    const shown = this.results.filter(({ main }) => main).at(-1)?.data['text/plain']
    return typeof shown === 'string' ? shown : null
  }

  /** Plots and other pictures, in the order in which they came. */
  get images(): CodeImage[] {
    return this.results.flatMap(({ data }) => {
      const mime = ['image/png', 'image/jpeg'].find((type) => typeof data[type] === 'string')
      return mime === undefined ? [] : [{ mime, bytes: bytesOfBase64(String(data[mime])) }]
    })
  }
}

const DEFAULT_MS = 120_000

export function codeOf(transport: Transport, unitId: string): Code {
  const path = `/v1/units/${encodeURIComponent(unitId)}/code`
  const pathOf = (context: string | CodeContext) => `${path}/contexts/${encodeURIComponent(idOf(context))}`
  const runCall = (code: string, { signal, context, ...asked }: RunCodeOptions) => ({
    method: 'POST' as const,
    path,
    body: { ...asked, code, ...(context === undefined ? {} : { context: idOf(context) }) },
    // The unit may have to wake before, and a context to begin.
    extraMs: asked.timeoutMs ?? DEFAULT_MS,
    ...(signal ? { signal } : {}),
  })
  return {
    run: async (code, options = {}) =>
      new CodeOutcome(await transport.json<CodeResult>(runCall(code, options))),
    stream: (code, options = {}) => transport.events(runCall(code, options)),
    createContext: async (body = {}, options = {}) =>
      await transport.json({ method: 'POST', path: `${path}/contexts`, body, ...options }),
    contexts: async (options = {}) =>
      (await transport.json<CodeContextList>({ method: 'GET', path: `${path}/contexts`, ...options }))
        .contexts,
    restart: async (context, options = {}) =>
      await transport.json({ method: 'POST', path: `${pathOf(context)}/restart`, ...options }),
    interrupt: async (context, options = {}) =>
      await transport.json({ method: 'POST', path: `${pathOf(context)}/interrupt`, ...options }),
    delete: async (context, options = {}) => {
      await transport.json({ method: 'DELETE', path: pathOf(context), ...options })
    },
  }
}

function idOf(context: string | CodeContext): string {
  return typeof context === 'string' ? context : context.id
}
