// Where the service waits for the world it waits at a gate: for its clock, its database, its engine. The
// simulator opens one gate at a time, in an order drawn from the seed, and waits until everything stands
// still again. So nothing is left to chance between two openings, and a seed replays exactly.

/** One life of a process. Once it is over nothing of it ever happens again. */
export type Life = { readonly name: string; readonly end: AbortController }

export type Gate = {
  life: Life
  what: string
  kind: 'clock' | 'database' | 'engine' | 'event' | 'world'
  /** When it can be opened, on the simulated clock; at once if left out. */
  dueMs: number
  /** Whether it can be opened, apart from the time. */
  isFree: () => boolean
  /** Passed over for now: an answer on a slow way. */
  isSlow: boolean
  /** Let so many others go first, where there are others; null until that is drawn. */
  patience: number | null
  open: () => void
  fail: (error: unknown) => void
}

type GateOptions = Partial<Pick<Gate, 'dueMs' | 'isFree' | 'isSlow'>> & { signal?: AbortSignal | undefined }

export type Gates = {
  /** Resolves when the simulator opens the gate. Never, when the life ends before. */
  pass: (life: Life, kind: Gate['kind'], what: string, options?: GateOptions) => Promise<void>
  /** The same, with the gate in hand. Null for the dead: they wait for ever, and at no gate. */
  close(
    life: Life,
    kind: Gate['kind'],
    what: string,
    options?: GateOptions,
  ): { gate: Gate | null; passed: Promise<void> }
  /** All that are closed, oldest first. */
  closed: () => Gate[]
  /** As if no call had come to it; one that did waits for ever. */
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
