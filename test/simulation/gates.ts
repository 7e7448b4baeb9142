// Where the server waits for its clock, database or engine, it waits at a gate. The simulator opens one gate at a
// time, in an order drawn from the seed, and waits until nothing moves. So nothing depends on chance between two
// openings, and a seed replays exactly.

/** The life of one process. After its end, nothing of it ever happens again. */
export type Life = { readonly name: string; readonly end: AbortController }

export type Gate = {
  life: Life
  what: string
  kind: 'clock' | 'database' | 'engine' | 'event' | 'world'
  /** The simulated time at which it can be opened; at once by default. */
  dueMs: number
  /** Whether it can be opened, apart from the time. */
  isFree: () => boolean
  /** Skipped for now: a slow answer. */
  isSlow: boolean
  /** How many other gates are opened first, if there are others; null until that is drawn. */
  patience: number | null
  open: () => void
  fail: (error: unknown) => void
}

type GateOptions = Partial<Pick<Gate, 'dueMs' | 'isFree' | 'isSlow'>> & { signal?: AbortSignal | undefined }

export type Gates = {
  /** Resolves when the simulator opens the gate, or never if the life ends before. */
  pass: (life: Life, kind: Gate['kind'], what: string, options?: GateOptions) => Promise<void>
  /** Also returns the gate. It is null for a dead process, which waits for ever at no gate. */
  close(
    life: Life,
    kind: Gate['kind'],
    what: string,
    options?: GateOptions,
  ): { gate: Gate | null; passed: Promise<void> }
  /** All closed gates, oldest first. */
  closed: () => Gate[]
  /** Removes a gate; a call that waits at it waits for ever. */
  forget: (gate: Gate) => void
}

export function createLife(name: string): Life {
  return { name, end: new AbortController() }
}

export function createGates(): Gates {
  const closed = new Set<Gate>()

  const close: Gates['close'] = (life, kind, what, options = {}) => {
    const { dueMs = -Infinity, isFree = () => true, isSlow = false, signal } = options
    const { promise: passed, resolve, reject } = Promise.withResolvers<void>()
    if (life.end.signal.aborted) return { gate: null, passed }
    const leave = () => {
      closed.delete(gate)
      signal?.removeEventListener('abort', onAbort)
    }
    const open = () => {
      leave()
      resolve()
    }
    const fail = (error: unknown) => {
      leave()
      reject(error)
    }
    const gate: Gate = { life, what, kind, dueMs, isFree, isSlow, patience: null, open, fail }
    const onAbort = () => fail(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    closed.add(gate)
    if (signal?.aborted) onAbort()
    return { gate, passed }
  }

  return {
    close,
    pass: async (...place) => await close(...place).passed,
    closed: () => [...closed],
    forget: (gate) => void closed.delete(gate),
  }
}
